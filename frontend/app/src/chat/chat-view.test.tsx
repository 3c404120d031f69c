import { screen, waitFor, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import type { UIMessage, UIMessageChunk } from "ai";
import { afterEach, expect, test, vi } from "vitest";
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

/** Stub a server with a stored chat and one response for all posts; returns the posts. */
function stubServer(messages: UIMessage[], response: UIMessageChunk[] | Response) {
  const posts: { messages: UIMessage[]; edits?: object; remember?: object }[] = [];
  const createResponse = () => {
    if (response instanceof Response) return response.clone();
    const lines = response.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
    return new Response(`${lines.join("")}data: [DONE]\n\n`);
  };
  vi.stubGlobal("fetch", async (url: string | URL, init: RequestInit = {}) => {
    const { pathname } = new URL(url, location.href);
    if (pathname.endsWith("/suggestions.json")) return Response.json(["Say hello"]);
    if (pathname.endsWith("/stream")) return new Response(null, { status: 204 });
    if (init.method === "POST" && pathname.endsWith("/chat")) {
      posts.push(JSON.parse(String(init.body)));
      return createResponse();
    }
    return messages.length === 0
      ? new Response("There is no such chat.", { status: 404 })
      : Response.json({ id: "c1", title: "Both", messages, status: "waiting" });
  });
  return posts;
}

function renderChat() {
  renderPage(
    <ChatView
      id="c1"
      preferences={PREFERENCES}
      onChanged={() => {}}
      isInspecting={false}
      onCloseInspector={() => {}}
    />,
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

test("the decisions of a group are sent in one request with their grants", async () => {
  const posts = stubServer(PENDING, ANSWER);
  const user = renderChat();
  await press(user, "Send money", "Do not ask again…");
  await press(user, "Send money", "Approve and do not ask again");
  expect(posts).toHaveLength(0);
  expect((await card("Send money")).textContent).toContain("approved, not sent yet");
  await press(user, "Archive", "Deny");
  expect((await screen.findByText("Settled.")).tagName).toBe("STRONG");
  expect(posts).toHaveLength(1);
  const approvals = posts[0]?.messages.at(-1)?.parts.flatMap((part) => {
    if (!("approval" in part) || part.approval === undefined) return [];
    return [[part.approval.id, part.approval.approved]];
  });
  expect(approvals).toEqual([
    ["ap-pay", true],
    ["ap-file", false],
  ]);
  expect(posts[0]?.remember).toEqual({ "ap-pay": { where: ["id"], ttl: 86_400 } });
  expect((await tool("Send money")).textContent).toContain("done");
  expect((await tool("Archive")).textContent).toContain("denied");
});

test("the button to approve all sends one request", async () => {
  const posts = stubServer(PENDING, ANSWER);
  const user = renderChat();
  await user.click(await screen.findByRole("button", { name: "Approve all" }));
  await screen.findByText("Settled.");
  expect(posts).toHaveLength(1);
});

test("the requests are announced, and the first card has the focus", async () => {
  stubServer(PENDING, ANSWER);
  renderChat();
  const first = await card("Send money");
  await waitFor(() => expect(document.activeElement).toBe(first));
  expect(screen.getByRole("status").textContent).toBe("2 approvals needed: Send money, Archive");
});

test("a refused decision can be sent again", async () => {
  const refusal = new Response("The server is busy; try again in a moment.", { status: 503 });
  const posts = stubServer(PENDING, refusal);
  const user = renderChat();
  await user.click(await screen.findByRole("button", { name: "Approve all" }));
  expect((await screen.findByRole("alert")).textContent).toContain("The server is busy");
  stubServer(PENDING, ANSWER);
  await user.click(screen.getByRole("button", { name: "Try again" }));
  await screen.findByText("Settled.");
  expect(posts).toHaveLength(1);
});

test("a suggestion is sent as the first message", async () => {
  const posts = stubServer(
    [],
    ANSWER.with(1, { type: "start-step" }).with(2, { type: "start-step" }),
  );
  const user = renderChat();
  await user.click(await screen.findByRole("button", { name: "Say hello" }));
  await screen.findByText("Settled.");
  expect(posts[0]?.messages.at(-1)?.parts).toEqual([{ type: "text", text: "Say hello" }]);
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
