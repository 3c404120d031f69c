import { screen, waitFor, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import type { UIMessage, UIMessageChunk } from "ai";
import { afterEach, expect, test, vi } from "vitest";
import { setBranding } from "../../testing/branding.ts";
import { renderPage } from "../../testing/render.tsx";
import type { Preferences } from "../preferences.ts";
import { ChatView } from "./chat-view.tsx";

const PREFERENCES: Preferences = {
  transport: "sse",
  release: "preview",
  setTransport() {},
  setRelease() {},
};

function approvalRequest(id: string, title: string) {
  return {
    type: `tool-${id}` as const,
    toolCallId: `call-${id}`,
    title,
    state: "approval-requested" as const,
    input: { id },
    approval: { id: `ap-${id}`, descriptor: { editable: true, rememberable: true } },
  };
}

const PENDING: UIMessage[] = [
  { id: "u1", role: "user", parts: [{ type: "text", text: "Do both" }] },
  {
    id: "a1",
    role: "assistant",
    parts: [
      { type: "step-start" },
      approvalRequest("pay", "Send money"),
      approvalRequest("file", "Archive"),
    ],
  },
];

const ANSWER: UIMessageChunk[] = [
  { type: "start", messageId: "a1" },
  { type: "tool-output-available", toolCallId: "call-pay", output: { paid: true } },
  { type: "tool-output-denied", toolCallId: "call-file" },
  { type: "start-step" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "**Settled.**" },
  { type: "text-end", id: "t" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop", messageMetadata: { model: "m" } },
];

/** The calls of `PENDING`, with which a resumed stream begins. */
const CALLS = ["pay", "file"].flatMap((id): UIMessageChunk[] => [
  {
    type: "tool-input-available",
    toolCallId: `call-${id}`,
    toolName: id,
    input: { id },
    title: id === "pay" ? "Send money" : "Archive",
  },
  { type: "tool-approval-request", approvalId: `ap-${id}`, toolCallId: `call-${id}` },
  { type: "tool-approval-response", approvalId: `ap-${id}`, approved: id === "pay" },
]);

interface Posts {
  readonly messages: { messages: UIMessage[] }[];
  /** The decisions, as [approval id, body]. */
  readonly decisions: [id: string, body: object][];
}

function isDecided(part: object, decided: ReadonlyMap<string, object>) {
  const { approval } = part as { approval?: { id: string } };
  const decision = approval && decided.get(approval.id);
  return decision
    ? { ...part, state: "approval-responded", approval: { ...approval, ...decision } }
    : part;
}

/**
 * Stub a server with a stored chat. A message is answered with the response; so is the stream that
 * the page resumes after the last decision. `refusal` refuses the decisions.
 */
function stubServer(messages: UIMessage[], response: UIMessageChunk[], refusal?: Response): Posts {
  const posts: Posts = { messages: [], decisions: [] };
  const decided = new Map<string, object>();
  const isRunning = () => decided.size === 2;
  const stream = (calls: UIMessageChunk[] = []) => {
    const lines = [...response.slice(0, 1), ...calls, ...response.slice(1)].map(
      (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
    );
    return new Response(`${lines.join("")}data: [DONE]\n\n`);
  };
  const decide = (id: string, body: { approved: boolean }) => {
    if (refusal !== undefined) return refusal.clone();
    posts.decisions.push([id, body]);
    decided.set(id, { approved: body.approved });
    return Response.json({}, { status: 202 });
  };
  const stored = () =>
    messages.map((message) => ({
      ...message,
      parts: message.parts.map((part) => isDecided(part, decided)),
    }));
  vi.stubGlobal("fetch", async (url: string | URL, init: RequestInit = {}) => {
    const { pathname } = new URL(url, location.href);
    const [, approvalId] = /\/approvals\/(.*)$/.exec(pathname) ?? [];
    if (approvalId !== undefined) return decide(approvalId, JSON.parse(String(init.body)));
    if (pathname.endsWith("/stream")) {
      return isRunning()
        ? stream([{ type: "start-step" }, ...CALLS])
        : new Response(null, { status: 204 });
    }
    if (init.method === "POST" && pathname.endsWith("/chat")) {
      posts.messages.push(JSON.parse(String(init.body)));
      return stream();
    }
    const status = isRunning() ? "running" : "waiting";
    return messages.length === 0
      ? new Response("There is no such chat.", { status: 404 })
      : Response.json({ id: "c1", title: "Both", messages: stored(), status });
  });
  return posts;
}

function renderChat() {
  renderPage(
    <ChatView id="c1" preferences={PREFERENCES} onChanged={() => {}} subscribe={() => () => {}} />,
  );
  return userEvent.setup();
}

const card = (title: string) => screen.findByRole("region", { name: `Approval: ${title}` });
const tool = (title: string) => screen.findByRole("region", { name: `Tool: ${title}` });
const press = async (user: ReturnType<typeof userEvent.setup>, title: string, name: string) =>
  user.click(within(await card(title)).getByRole("button", { name }));

afterEach(() => {
  vi.unstubAllGlobals();
});

test("each decision of a group is sent at once with its grant", async () => {
  const posts = stubServer(PENDING, ANSWER);
  const user = renderChat();
  await press(user, "Send money", "Do not ask again…");
  await press(user, "Send money", "Continue");
  await press(user, "Send money", "Approve and do not ask again");
  await waitFor(async () => expect((await card("Send money")).textContent).toContain("approved"));
  const remember = { where: ["id"], ttl: 86_400 };
  expect(posts.decisions).toEqual([["ap-pay", { approved: true, remember }]]);
  await press(user, "Archive", "Deny");
  await user.keyboard("Too old.{Enter}");
  expect((await screen.findByText("Settled.")).tagName).toBe("STRONG");
  expect(posts.decisions[1]).toEqual(["ap-file", { approved: false, reason: "Too old." }]);
  expect(posts.messages).toEqual([]);
  expect((await tool("Send money")).textContent).toContain("done");
  expect((await tool("Archive")).textContent).toContain("denied");
});

test("the button to approve all sends each approval", async () => {
  const posts = stubServer(PENDING, ANSWER);
  const user = renderChat();
  await user.click(await screen.findByRole("button", { name: "Approve all" }));
  await screen.findByText("Settled.");
  expect(posts.decisions.map(([id]) => id)).toEqual(["ap-pay", "ap-file"]);
});

test("the requests and what becomes of them are announced", async () => {
  stubServer(PENDING, ANSWER);
  const user = renderChat();
  await card("Send money");
  const status = screen.getByRole("status");
  await waitFor(() =>
    expect(status.textContent).toBe("2 approvals needed: Send money (pay); Archive (file)."),
  );
  await press(user, "Send money", "Approve");
  await waitFor(() => expect(status.textContent).toContain("Send money (pay): approved."));
  await press(user, "Archive", "Approve");
  await waitFor(() => expect(status.textContent).toContain("Send money (pay): done."));
});

test("after a decision the next card has the focus, then the row of the last call", async () => {
  stubServer(PENDING, ANSWER);
  const user = renderChat();
  await press(user, "Send money", "Approve");
  const second = await card("Archive");
  await waitFor(() => expect(document.activeElement).toBe(second));
  await press(user, "Archive", "Approve");
  const row = await tool("Archive");
  await waitFor(() => expect(document.activeElement).toBe(row));
});

test("an answer does not look ended while the stream of its turn is requested", async () => {
  stubServer(PENDING, ANSWER);
  const send = fetch;
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const isRequested = vi.fn();
  vi.stubGlobal("fetch", async (url: string, init?: RequestInit) => {
    const response = await send(url, init);
    if (!url.endsWith("/stream") || response.status === 204) return response;
    isRequested();
    await released;
    return response;
  });
  const user = renderChat();
  await user.click(await screen.findByRole("button", { name: "Approve all" }));
  await waitFor(() => expect(isRequested).toHaveBeenCalled());
  await tool("Send money");
  expect(screen.queryByRole("button", { name: /^Answer again/ })).toBeNull();
  expect(screen.getByRole("button", { name: "Stop" })).toBeTruthy();
  release();
  await screen.findByText("Settled.");
  expect(await screen.findByRole("button", { name: /^Answer again/ })).toBeTruthy();
});

/** Hold the responses to requests of the chat's stream; the function that is returned releases them. */
function holdResume(response?: Response): { isRequested: () => boolean; release: () => void } {
  const send = fetch;
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let isRequested = false;
  vi.stubGlobal("fetch", async (url: string, init?: RequestInit) => {
    if (!String(url).endsWith("/stream")) return send(url, init);
    isRequested = true;
    await released;
    return response ?? send(url, init);
  });
  return { isRequested: () => isRequested, release };
}

const SETTLED: UIMessage[] = [
  { id: "u1", role: "user", parts: [{ type: "text", text: "Do both" }] },
  { id: "a1", role: "assistant", parts: [{ type: "text", text: "Both are done." }] },
];

const REPLY: UIMessageChunk[] = [
  { type: "start", messageId: "a2" },
  { type: "start-step" },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "It is sunny." },
  { type: "text-end", id: "t" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop" },
];

const field = () => screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Message" });
const QUEUED = "This message is sent when the answer is complete.";

/** A response that streams the chunks. */
function streamed(chunks: UIMessageChunk[]): Response {
  const lines = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
  return new Response(`${lines.join("")}data: [DONE]\n\n`);
}

test("a message waits until the server has said whether a turn runs", async () => {
  const posts = stubServer(SETTLED, REPLY);
  const { isRequested, release } = holdResume();
  const user = renderChat();
  await screen.findByText("Both are done.");
  await waitFor(() => expect(isRequested()).toBe(true));
  await user.type(field(), "Thanks{Enter}");
  expect(screen.getByText(QUEUED)).toBeTruthy();
  expect(field().value).toBe("Thanks");
  expect(posts.messages).toEqual([]);
  release();
  await screen.findByText("It is sunny.");
  expect(screen.queryByText(QUEUED)).toBeNull();
  expect(field().value).toBe("");
  expect(posts.messages[0]?.messages.at(-1)?.parts).toEqual([{ type: "text", text: "Thanks" }]);
});

test("a message that is sent during an answer follows it", async () => {
  const posts = stubServer(SETTLED, REPLY);
  const answer = { type: "start", messageId: "a1" } as const;
  const { release } = holdResume(streamed([answer, ...REPLY.slice(1)]));
  const user = renderChat();
  await screen.findByText("Both are done.");
  await user.type(field(), "Thanks{Enter}");
  release();
  await waitFor(() => expect(posts.messages).toHaveLength(1));
  const [, before, last] = posts.messages[0]?.messages ?? [];
  expect(before?.parts.at(-1)).toMatchObject({ type: "text", text: "It is sunny." });
  expect(last?.parts).toEqual([{ type: "text", text: "Thanks" }]);
});

test.each([
  ["pressing the button of its note", () => screen.getByRole("button", { name: "Do not send" })],
  ["changing it", undefined],
])("a queued message becomes a draft again by %s", async (_, button) => {
  const posts = stubServer(SETTLED, REPLY);
  const { release } = holdResume();
  const user = renderChat();
  await screen.findByText("Both are done.");
  await user.type(field(), "Thanks{Enter}");
  if (button === undefined) await user.type(field(), "!");
  else await user.click(button());
  release();
  expect(screen.queryByText(QUEUED)).toBeNull();
  await waitFor(() => expect(screen.getByRole("button", { name: "Send" })).toBeTruthy());
  await user.type(field(), "{Enter}");
  await screen.findByText("It is sunny.");
  expect(posts.messages).toHaveLength(1);
});

test("a queued message withdraws no approval that the answer before it requests", async () => {
  const posts = stubServer(PENDING.slice(0, 1), ANSWER);
  const [call, request] = CALLS;
  const { release } = holdResume(
    streamed([
      { type: "start", messageId: "a1" },
      { type: "start-step" },
      ...[call, request].filter((chunk) => chunk !== undefined),
      { type: "finish-step" },
      { type: "finish", finishReason: "tool-calls" },
    ]),
  );
  const user = renderChat();
  await screen.findByText("Do both");
  await user.type(field(), "Thanks{Enter}");
  release();
  await card("Send money");
  await screen.findByText(/^This message is sent after the approval/);
  expect(posts.messages).toEqual([]);
  await user.type(field(), "{Enter}");
  await waitFor(() => expect(posts.messages).toHaveLength(1));
});

test("a refused decision keeps its card open and can be sent again", async () => {
  const refusal = new Response("The server is busy; try again in a moment.", { status: 503 });
  stubServer(PENDING, ANSWER, refusal);
  const user = renderChat();
  await press(user, "Send money", "Approve");
  expect((await screen.findByRole("alert")).textContent).toContain("The server is busy");
  expect((await card("Send money")).textContent).toContain("not sent");
  const posts = stubServer(PENDING, ANSWER);
  await user.click(screen.getByRole("button", { name: "Retry" }));
  await press(user, "Archive", "Approve");
  await screen.findByText("Settled.");
  expect(posts.decisions.map(([id]) => id)).toEqual(["ap-pay", "ap-file"]);
});

test("a suggestion is sent as the first message", async () => {
  setBranding({ suggestions: ["Say hello"] });
  const posts = stubServer(
    [],
    ANSWER.with(1, { type: "start-step" }).with(2, { type: "start-step" }),
  );
  const user = renderChat();
  await user.click(await screen.findByRole("button", { name: "Say hello" }));
  await screen.findByText("Settled.");
  expect(posts.messages[0]?.messages.at(-1)?.parts).toEqual([{ type: "text", text: "Say hello" }]);
});

test("edited arguments are shown before the requested ones", async () => {
  const edits = { id: "other" };
  const finish = {
    type: "finish",
    messageMetadata: { approvals: { "ap-pay": { edits } } },
  } as const;
  stubServer(PENDING, ANSWER.with(-1, finish));
  const user = renderChat();
  await user.click(await screen.findByRole("button", { name: "Approve all" }));
  await screen.findByText("Settled.");
  const row = await tool("Send money");
  await user.click(within(row).getByRole("button", { name: "Details" }));
  const tables = within(row).getAllByRole("table");
  expect(tables.map((table) => [table.ariaLabel, table.textContent])).toEqual([
    ["Arguments", "idother"],
    ["Asked for", "idpay"],
    ["Result", "paidtrue"],
  ]);
});

test("an edited answer of a confirmation is shown as edited arguments are", async () => {
  const payload = { days: 0, note: "Ask" };
  const call = {
    ...approvalRequest("leave", "Request leave"),
    state: "output-available" as const,
    approval: { id: "ap-leave", approved: true as const, descriptor: { payload } },
    output: { days: 3 },
  };
  const editedPayload = { days: 3, note: "Ask" };
  const approvals = { "ap-leave": { state: "executed", decidedBy: "ada", editedPayload } };
  const messages: UIMessage[] = [
    { id: "u1", role: "user", parts: [{ type: "text", text: "Leave" }] },
    { id: "a1", role: "assistant", parts: [call], metadata: { approvals } },
  ];
  stubServer(messages, ANSWER);
  const user = renderChat();
  const row = await tool("Request leave");
  expect(row.textContent).toContain("Approved by ada, with changes");
  const changes = within(row).getByRole("list", { name: "Changes" });
  expect(changes.textContent).toBe("answer.days: 0 → 3");
  await user.click(within(row).getByRole("button", { name: "Details" }));
  const tables = within(row).getAllByRole("table");
  expect(tables.map((table) => [table.ariaLabel, table.textContent])).toEqual([
    ["Arguments", "idleave"],
    ["Answer", "days3noteAsk"],
    ["Answer asked for", "days0noteAsk"],
    ["Result", "days3"],
  ]);
});

test("calls of one tool have different accessible names", async () => {
  const call = (toolCallId: string) => ({
    type: "tool-look_up" as const,
    toolCallId,
    title: "Look up",
    state: "output-available" as const,
    input: {},
    output: {},
  });
  const messages: UIMessage[] = [
    { id: "u1", role: "user", parts: [{ type: "text", text: "Look up two" }] },
    { id: "a1", role: "assistant", parts: [call("c1"), call("c2")] },
    { id: "u2", role: "user", parts: [{ type: "text", text: "And one more" }] },
    { id: "a2", role: "assistant", parts: [call("c3")] },
  ];
  stubServer(messages, ANSWER);
  renderChat();
  await tool("Look up");
  const names = screen.getAllByRole("region").map((region) => region.ariaLabel);
  expect(names.filter((name) => name?.startsWith("Tool: "))).toEqual([
    "Tool: Look up",
    "Tool: Look up, call 2",
    "Tool: Look up, call 3",
  ]);
});
