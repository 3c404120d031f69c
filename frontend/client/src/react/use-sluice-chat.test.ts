import { expect, test } from "vitest";
import { MAJOR, Page } from "../../testing/hook.ts";
import { ANSWER, denial, gatedCall, output, step, text, turn } from "../testing/chunks.ts";
import {
  ControlledStream,
  type Responder,
  refusal,
  ScriptedServer,
  type ServerRequest,
  storedChat,
  streamOf,
} from "../testing/scripted-server.ts";

const USER = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay." }] };
const GATED = streamOf(turn(step(gatedCall("c1"), gatedCall("c2"))));
const SETTLED = turn(output("c1"), output("c2"), ANSWER);

function approvalMessage(state: string, approval: object): object {
  const part = { type: "tool-pay", toolCallId: "c1", state, input: {} };
  return {
    id: "m1",
    role: "assistant",
    parts: [{ type: "step-start" }, { ...part, approval: { id: "approval-c1", ...approval } }],
  };
}

/** A page with two pending approvals. */
async function pageWithApprovals(server: ScriptedServer): Promise<Page> {
  server.postResponders.push(GATED);
  const page = new Page(server);
  await page.act((chat) => chat.sendMessage({ text: "Pay." }));
  await page.waitForStatus();
  expect(page.chat.pending.map(({ approvalId }) => approvalId)).toEqual([
    "approval-c1",
    "approval-c2",
  ]);
  return page;
}

test("two decisions are sent in one post with the major", async () => {
  const server = new ScriptedServer();
  const page = await pageWithApprovals(server);
  server.postResponders.push(streamOf(turn(output("c1"), denial("c2"), ANSWER)));
  await page.act((chat) => chat.approve("approval-c1"));
  expect(server.posts).toHaveLength(1);
  await page.act((chat) => chat.deny("approval-c2", "too expensive"));
  await page.waitFor(() => expect(page.text).toBe("Done."));

  expect(server.posts).toHaveLength(2);
  expect(server.posts[1]?.headers["x-ai-sdk"]).toBe(String(MAJOR));
  expect(JSON.stringify(server.posts[1]?.body)).toContain('"reason":"too expensive"');
  expect(page.states).toEqual(["output-available", "output-denied"]);
  expect(page.chat.pending).toEqual([]);
});

test("edits and grants are sent once, with their decisions", async () => {
  const server = new ScriptedServer();
  const page = await pageWithApprovals(server);
  server.postResponders.push(streamOf(SETTLED), streamOf(turn(ANSWER)));
  await page.act((chat) => chat.approve("approval-c1", { edit: { amount: 7 } }));
  await page.act((chat) => chat.approve("approval-c2", { remember: "chat" }));
  await page.waitFor(() => expect(page.text).toBe("Done."));
  await page.act((chat) => chat.sendMessage({ text: "Thanks." }));
  await page.waitForStatus();

  const [, decisions, after] = server.posts;
  expect(decisions?.body.edits).toEqual({ "approval-c1": { amount: 7 } });
  expect(decisions?.body.remember).toEqual({ "approval-c2": "chat" });
  expect(after?.body).not.toHaveProperty("edits");
  expect(after?.body).not.toHaveProperty("remember");
});

test("an edit is sent again if the request failed", async () => {
  const server = new ScriptedServer();
  const page = await pageWithApprovals(server);
  server.postResponders.push(
    () => Promise.reject(new TypeError("Failed to fetch")),
    streamOf(turn(output("c1"), denial("c2"), ANSWER)),
  );
  await page.act((chat) => chat.deny("approval-c2"));
  await page.act((chat) => chat.approve("approval-c1", { edit: { amount: 7 } }));
  await page.waitForStatus("error");
  await page.act((chat) => chat.sendMessage());
  await page.waitForStatus();

  expect(server.posts.map(({ body }) => body.edits)).toEqual([
    undefined,
    { "approval-c1": { amount: 7 } },
    { "approval-c1": { amount: 7 } },
  ]);
});

test("stop stops the turn and shows the rest of the stream", async () => {
  const server = new ScriptedServer();
  const stream = new ControlledStream();
  server.postResponders.push(stream.respond);
  const page = new Page(server, { stopTimeout: 120_000 });
  await page.act((chat) => void chat.sendMessage({ text: "Go." }));
  stream.write(turn(text("Half")).slice(0, 3));
  await page.waitFor(() => expect(page.text).toBe("Half"));
  await page.act((chat) => void chat.stop());
  await page.waitFor(() => expect(page.chat.isStopping).toBe(true));
  expect(server.log).toContain("POST /api/chat/chat/stop");
  stream.write([
    { type: "text-end", id: "t1" },
    { type: "finish", finishReason: "other" },
  ]);
  stream.end();
  await page.waitFor(() => expect(page.chat.isStopping).toBe(false));

  expect(page.chat.status).toBe("ready");
  expect(page.parts.at(-1)).toMatchObject({ type: "text", text: "Half", state: "done" });
});

test("stop disconnects from the stream after its timeout", async () => {
  const server = new ScriptedServer();
  const stream = new ControlledStream();
  server.postResponders.push(stream.respond);
  const page = new Page(server, { stopTimeout: 1 });
  await page.act((chat) => void chat.sendMessage({ text: "Go." }));
  stream.write(turn(text("Half")).slice(0, 3));
  await page.waitFor(() => expect(page.text).toBe("Half"));
  await page.act((chat) => chat.stop());

  expect([page.chat.status, page.chat.isStopping]).toEqual(["ready", false]);
});

test("a refused stop disconnects from the stream and rejects", async () => {
  const server = new ScriptedServer();
  const stream = new ControlledStream();
  server.postResponders.push(stream.respond);
  server.onStop = refusal(503, "unavailable", "Come back later.");
  const page = new Page(server);
  await page.act((chat) => void chat.sendMessage({ text: "Go." }));
  await page.act((chat) => expect(chat.stop()).rejects.toThrow("Come back later."));

  expect([page.chat.status, page.chat.isStopping]).toEqual(["ready", false]);
});

test.each([
  ["the chat", storedChat("ready", [USER]), [USER]],
  ["nothing", refusal(404, "unknown", "There is no such chat."), []],
])(
  "a message that is stopped without a connection returns as unsent; stored is %s",
  async (_, onLoad, messages) => {
    const server = new ScriptedServer();
    const lost: Responder = () => Promise.reject(new TypeError("Failed to fetch"));
    server.postResponders.push(lost);
    server.onLoad = server.onStop = lost;
    const page = new Page(server, { messages: messages as never });
    await page.act((chat) => chat.sendMessage({ text: "Go." }));
    await page.waitFor(() => expect(page.chat.isReconnecting).toBe(true));
    await page.act((chat) => expect(chat.stop()).rejects.toThrow("Failed to fetch"));
    expect(page.chat.isReconnecting).toBe(true);
    server.onLoad = onLoad;
    await page.waitFor(() => expect(page.chat.refusal?.unsent).toBeDefined());

    await page.waitFor(() => expect(page.chat.isReconnecting).toBe(false));
    expect(page.chat.refusal?.unsent?.parts).toEqual([{ type: "text", text: "Go." }]);
    expect(page.chat.messages).toEqual(messages);
    expect([page.chat.status, page.chat.error]).toEqual(["ready", undefined]);
    expect(server.posts).toHaveLength(1);
  },
);

test("stop closes pending approvals", async () => {
  const server = new ScriptedServer();
  const page = await pageWithApprovals(server);
  const closed = approvalMessage("output-denied", { approved: false, reason: "Stopped." });
  server.onLoad = storedChat("ready", [USER, closed]);
  await page.act((chat) => chat.stop());

  expect(page.states).toEqual(["output-denied"]);
  expect(page.chat.pending).toEqual([]);
});

test("held text of a superseded message is shown while the next answer streams", async () => {
  const server = new ScriptedServer();
  const page = await pageWithApprovals(server);
  const [question] = page.chat.messages;
  const stored = approvalMessage("output-denied", { approved: false, reason: "You went on." });
  const held = { ...stored, parts: [{ type: "text", text: "I prepare it." }] };
  server.onLoad = storedChat("running", [question ?? USER, held]);
  const stream = new ControlledStream();
  server.postResponders.push(stream.respond);
  await page.act((chat) => void chat.sendMessage({ text: "Never mind." }));
  const loads = () => server.log.filter((line) => line === "GET /api/chats/chat").length;
  const before = loads();
  const [start, ...rest] = turn(text("Fine."));
  const closed = ["c1", "c2"].map((call) => ({
    type: "data-approval",
    data: { approvalId: `approval-${call}`, messageId: "m1", state: "superseded", reason: "So." },
    transient: true,
  }));
  stream.write([{ ...start, messageId: "m2" } as never, ...(closed as never[])]);
  await page.waitFor(() => expect(page.text).toBe("I prepare it."));
  stream.write(rest);
  stream.end();
  await page.waitFor(() => expect(page.text).toBe("I prepare it.Fine."));
  expect(loads() - before).toBe(1);
});

test("approvals that new text has superseded are closed", async () => {
  const server = new ScriptedServer();
  const page = await pageWithApprovals(server);
  const closedPart = (approvalId: string) => ({
    type: "data-approval",
    data: { approvalId, messageId: "m1", state: "superseded", reason: "You went on." },
    transient: true,
  });
  const [, ...rest] = turn(ANSWER);
  const start = { type: "start", messageId: "m2" };
  server.postResponders.push(
    streamOf([start, closedPart("approval-c1"), closedPart("approval-c2"), ...rest]),
  );
  await page.act((chat) => chat.approve("approval-c1"));
  await page.act((chat) => chat.sendMessage({ text: "No, wait." }));
  await page.waitForStatus();

  expect(page.states).toEqual(["output-error", "output-denied"]);
  const [yes, no] = page.parts.filter((part) => part.toolCallId !== undefined);
  expect(yes).toMatchObject({ errorText: "You went on.", approval: { approved: true } });
  expect(no?.approval).toMatchObject({ approved: false, reason: "You went on." });
});

test.each([
  { status: 404, code: "unknown" },
  { status: 409, code: "already_decided" },
  { status: 409, code: "superseded" },
])("a refusal with $status $code reloads the chat", async ({ status, code }) => {
  const server = new ScriptedServer();
  const page = await pageWithApprovals(server);
  const denied = approvalMessage("output-denied", { approved: false });
  server.onLoad = storedChat("ready", [USER, denied]);
  server.postResponders.push(refusal(status, code, "Somebody was first."));
  await page.act((chat) => chat.approve("approval-c1"));
  await page.act((chat) => chat.approve("approval-c2"));
  await page.waitFor(() => expect(page.states).toEqual(["output-denied"]));

  expect(page.chat.error).toMatchObject({ message: "Somebody was first.", status, code });
  expect(page.chat.refusal).toEqual({ error: page.chat.error });
  expect(server.posts).toHaveLength(2);
});

test("a refused decision is sent again if its approval is still pending", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(streamOf(turn(step(gatedCall("c1")))));
  server.postResponders.push(
    refusal(409, "turn_running", "Wait."),
    streamOf(turn(output("c1"), ANSWER)),
  );
  server.onLoad = storedChat("waiting", [USER, approvalMessage("approval-requested", {})]);
  const page = new Page(server);
  await page.act((chat) => chat.sendMessage({ text: "Pay." }));
  await page.waitForStatus();
  await page.act((chat) => chat.approve("approval-c1"));
  await page.waitFor(() => expect(page.chat.pending).toHaveLength(1));
  await page.act((chat) => chat.approve("approval-c1"));
  await page.waitFor(() => expect(page.text).toBe("Done."));

  expect(server.posts).toHaveLength(3);
});

test("a refused message is returned as unsent", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(
    refusal(409, "turn_running", "Wait for the answer."),
    streamOf(turn(ANSWER)),
  );
  server.onLoad = storedChat("ready", [USER]);
  const page = new Page(server);
  await page.act((chat) => chat.sendMessage({ text: "And then?" }));
  await page.waitFor(() => expect(page.chat.refusal?.unsent).toBeDefined());

  expect(page.chat.refusal?.unsent?.parts).toEqual([{ type: "text", text: "And then?" }]);
  expect(page.chat.messages).toEqual([USER]);
  await page.act((chat) => chat.sendMessage({ text: "And then?" }));
  await page.waitFor(() => expect(page.chat.refusal).toBeUndefined());
});

test("a message that the server did not store returns as unsent, without a bubble", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(refusal(429, "too_many_requests", "Slow down."));
  const page = new Page(server);
  await page.act((chat) => chat.sendMessage({ text: "Go." }));
  await page.waitFor(() => expect(page.chat.refusal?.unsent).toBeDefined());

  expect(page.chat.error?.message).toBe("Slow down.");
  expect(page.chat.refusal?.unsent?.parts).toEqual([{ type: "text", text: "Go." }]);
  expect(page.chat.messages).toEqual([]);
});

test("messages that an edit in another page replaced are removed", async () => {
  const server = new ScriptedServer();
  const answer = (id: string) => ({ id, role: "assistant", parts: [{ type: "text", text: id }] });
  const later = { ...USER, id: "u2" };
  const messages = [USER, answer("m1"), later, answer("m2")];
  const page = new Page(server, { messages: messages as never });
  server.onLoad = storedChat("ready", [USER, answer("m3")]);
  await page.act((chat) => chat.synchronize());

  expect(page.chat.messages.map(({ id }) => id)).toEqual(["u1", "m3"]);
});

test("an answer that the server has left is continued once", async () => {
  const server = new ScriptedServer();
  const stored = { id: "m1", role: "assistant", parts: [{ type: "text", text: "Pa" }] };
  server.onLoad = storedChat("interrupted", [USER, stored]);
  server.postResponders.push(streamOf(turn(ANSWER)));
  const page = new Page(server, { messages: [USER, stored] as never });
  await page.act((chat) => chat.reload());
  await page.waitFor(() => expect(page.text).toContain("Done."));
  await page.act((chat) => chat.reload());

  expect(server.posts.map(({ body }) => body.message ?? body.messages)).toHaveLength(1);
});

test("a page resumes the running turn on mount without duplicates", async () => {
  const server = new ScriptedServer();
  const loaded = {
    id: "m1",
    role: "assistant",
    parts: [{ type: "step-start" }, { type: "text", text: "Do", state: "streaming" }],
  };
  server.onResume = streamOf(turn(ANSWER));
  const page = new Page(server, { messages: [USER, loaded] as never });
  await page.waitFor(() => expect(page.text).toBe("Done."));
  await page.waitForStatus();

  expect(page.chat.messages.map(({ id }) => id)).toEqual(["u1", "m1"]);
  expect(server.posts).toEqual([]);
});

test("a chat that is synchronized twice at once resumes its running turn once", async () => {
  const server = new ScriptedServer();
  const page = new Page(server, { messages: [USER] as never });
  await page.waitFor(() => expect(page.chat.isResumePending).toBe(false));
  const stream = new ControlledStream();
  const resumes: ServerRequest[] = [];
  server.onResume = (request) => {
    resumes.push(request);
    return stream.respond(request);
  };
  server.onLoad = storedChat("running", [USER]);
  await page.act((chat) => Promise.all([chat.synchronize(), chat.synchronize(), chat.reload()]));
  stream.write(turn(ANSWER));
  stream.end();
  await page.waitFor(() => expect(page.text).toBe("Done."));

  expect(resumes).toHaveLength(1);
  expect(resumes[0]?.signal?.aborted).not.toBe(true);
});

test("a resume after a lost connection has no duplicates", async () => {
  const server = new ScriptedServer();
  const stream = new ControlledStream();
  server.postResponders.push(stream.respond);
  const page = new Page(server);
  await page.act((chat) => void chat.sendMessage({ text: "Go." }));
  stream.write([...turn(step(text("Do"))).slice(0, 4)]);
  await page.waitFor(() => expect(page.text).toBe("Do"));
  stream.fail();
  await page.waitForStatus("error");
  server.onResume = streamOf(turn(ANSWER));
  await page.act((chat) => chat.resumeStream());

  expect(page.text).toBe("Done.");
});

test("an interrupted answer stays as it is until another page has the rest of it", async () => {
  const server = new ScriptedServer();
  const stream = new ControlledStream();
  server.postResponders.push(stream.respond);
  const page = new Page(server);
  await page.act((chat) => void chat.sendMessage({ text: "Go." }));
  stream.write([...turn(step(text("Do"))).slice(0, 4)]);
  await page.waitFor(() => expect(page.text).toBe("Do"));
  const question = page.chat.messages[0] ?? USER;
  server.onLoad = storedChat("ready", [question]);
  stream.fail();
  await page.waitFor(() => expect(page.chat.reconnectionError).toBeDefined());
  const { reconnectionError } = page.chat;
  expect(page.chat.isReconnecting).toBe(false);

  const isReconnecting: boolean[] = [];
  const load = server.onLoad;
  server.onLoad = (request) => {
    isReconnecting.push(page.chat.isReconnecting);
    return load(request);
  };
  await page.act((chat) => chat.synchronize());
  expect(isReconnecting).toEqual([false]);
  expect([page.text, page.chat.reconnectionError]).toEqual(["Do", reconnectionError]);

  const answer = { id: "m1", role: "assistant", parts: [{ type: "text", text: "Done." }] };
  server.onLoad = storedChat("ready", [question, answer]);
  await page.act((chat) => chat.synchronize());
  expect([page.text, page.chat.reconnectionError, page.chat.error]).toEqual([
    "Done.",
    undefined,
    undefined,
  ]);
});
