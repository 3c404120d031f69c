import { expect, test } from "vitest";
import { ANSWER, denial, gate, output, step, text, turn } from "../../testing/chunks.ts";
import { FakeServer, Feed, refuses, storedAs, streams } from "../../testing/fake-server.ts";
import { MAJOR, Page } from "../../testing/hook.ts";

const USER = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay." }] };
const GATES = streams(turn(step(gate("c1"), gate("c2"))));
const SETTLED = turn(output("c1"), output("c2"), ANSWER);

function card(state: string, approval: object): object {
  const part = { type: "tool-pay", toolCallId: "c1", state, input: {} };
  return {
    id: "m1",
    role: "assistant",
    parts: [{ type: "step-start" }, { ...part, approval: { id: "approval-c1", ...approval } }],
  };
}

/** A page on which two approvals wait. */
async function asked(server: FakeServer): Promise<Page> {
  server.posts.push(GATES);
  const page = new Page(server);
  await page.does((chat) => chat.sendMessage({ text: "Pay." }));
  await page.rests();
  expect(page.chat.pending.map(({ approvalId }) => approvalId)).toEqual([
    "approval-c1",
    "approval-c2",
  ]);
  return page;
}

test("two approvals are one post, which names the major", async () => {
  const server = new FakeServer();
  const page = await asked(server);
  server.posts.push(streams(turn(output("c1"), denial("c2"), ANSWER)));
  await page.does((chat) => chat.approve("approval-c1"));
  expect(server.sent).toHaveLength(1);
  await page.does((chat) => chat.deny("approval-c2", "too dear"));
  await page.shows(() => expect(page.text).toBe("Done."));

  expect(server.sent).toHaveLength(2);
  expect(server.sent[1]?.headers["x-ai-sdk"]).toBe(String(MAJOR));
  expect(JSON.stringify(server.sent[1]?.body)).toContain('"reason":"too dear"');
  expect(page.states).toEqual(["output-available", "output-denied"]);
  expect(page.chat.pending).toEqual([]);
});

test("what goes with a yes travels once, with the request that sends it", async () => {
  const server = new FakeServer();
  const page = await asked(server);
  server.posts.push(streams(SETTLED), streams(turn(ANSWER)));
  await page.does((chat) => chat.approve("approval-c1", { edit: { amount: 7 } }));
  await page.does((chat) => chat.approve("approval-c2", { remember: "chat" }));
  await page.shows(() => expect(page.text).toBe("Done."));
  await page.does((chat) => chat.sendMessage({ text: "Thanks." }));
  await page.rests();

  const [, answered, after] = server.sent;
  expect(answered?.body.edits).toEqual({ "approval-c1": { amount: 7 } });
  expect(answered?.body.remember).toEqual({ "approval-c2": "chat" });
  expect(after?.body).not.toHaveProperty("edits");
  expect(after?.body).not.toHaveProperty("remember");
});

test("what goes with a yes travels again when the request did not arrive", async () => {
  const server = new FakeServer();
  const page = await asked(server);
  server.posts.push(
    () => Promise.reject(new TypeError("Failed to fetch")),
    streams(turn(output("c1"), denial("c2"), ANSWER)),
  );
  await page.does((chat) => chat.deny("approval-c2"));
  await page.does((chat) => chat.approve("approval-c1", { edit: { amount: 7 } }));
  await page.rests("error");
  await page.does((chat) => chat.sendMessage());
  await page.rests();

  expect(server.sent.map(({ body }) => body.edits)).toEqual([
    undefined,
    { "approval-c1": { amount: 7 } },
    { "approval-c1": { amount: 7 } },
  ]);
});

test("a stop stops the server and shows what it still sends", async () => {
  const server = new FakeServer();
  const feed = new Feed();
  server.posts.push(feed.say);
  const page = new Page(server);
  await page.does((chat) => void chat.sendMessage({ text: "Go." }));
  feed.write(turn(text("Half")).slice(0, 3));
  await page.shows(() => expect(page.text).toBe("Half"));
  await page.does((chat) => void chat.stop());
  await page.shows(() => expect(page.chat.isStopping).toBe(true));
  expect(server.log).toContain("POST /api/chat/chat/stop");
  feed.write([
    { type: "text-end", id: "t1" },
    { type: "finish", finishReason: "other" },
  ]);
  feed.end();
  await page.shows(() => expect(page.chat.isStopping).toBe(false));

  expect(page.chat.status).toBe("ready");
  expect(page.parts.at(-1)).toMatchObject({ type: "text", text: "Half", state: "done" });
});

test("a stop that the server does not finish in time leaves the stream", async () => {
  const server = new FakeServer();
  const feed = new Feed();
  server.posts.push(feed.say);
  const page = new Page(server, { stopTimeout: 1 });
  await page.does((chat) => void chat.sendMessage({ text: "Go." }));
  feed.write(turn(text("Half")).slice(0, 3));
  await page.shows(() => expect(page.text).toBe("Half"));
  await page.does((chat) => chat.stop());

  expect([page.chat.status, page.chat.isStopping]).toEqual(["ready", false]);
});

test("a stop that cannot reach the server leaves the stream and says so", async () => {
  const server = new FakeServer();
  const feed = new Feed();
  server.posts.push(feed.say);
  server.stopped = refuses(503, "unavailable", "Come back later.");
  const page = new Page(server);
  await page.does((chat) => void chat.sendMessage({ text: "Go." }));
  await page.does((chat) => expect(chat.stop()).rejects.toThrow("Come back later."));

  expect([page.chat.status, page.chat.isStopping]).toEqual(["ready", false]);
});

test("a stop while approvals wait shows them closed", async () => {
  const server = new FakeServer();
  const page = await asked(server);
  const closed = card("output-denied", { approved: false, reason: "Stopped." });
  server.stored = storedAs("ready", [USER, closed]);
  await page.does((chat) => chat.stop());

  expect(page.states).toEqual(["output-denied"]);
  expect(page.chat.pending).toEqual([]);
});

test("cards that new text has closed are shown closed", async () => {
  const server = new FakeServer();
  const page = await asked(server);
  const news = (approvalId: string) => ({
    type: "data-approval",
    data: { approvalId, messageId: "m1", state: "superseded", reason: "You went on." },
    transient: true,
  });
  const [, ...rest] = turn(ANSWER);
  const start = { type: "start", messageId: "m2" };
  server.posts.push(streams([start, news("approval-c1"), news("approval-c2"), ...rest]));
  await page.does((chat) => chat.approve("approval-c1"));
  await page.does((chat) => chat.sendMessage({ text: "No, wait." }));
  await page.rests();

  expect(page.states).toEqual(["output-error", "output-denied"]);
  const [yes, no] = page.parts.filter((part) => part.toolCallId !== undefined);
  expect(yes).toMatchObject({ errorText: "You went on.", approval: { approved: true } });
  expect(no?.approval).toMatchObject({ approved: false, reason: "You went on." });
});

test.each([
  { status: 404, code: "unknown" },
  { status: 409, code: "already_decided" },
  { status: 409, code: "superseded" },
])("a refusal with $status $code loads the chat anew", async ({ status, code }) => {
  const server = new FakeServer();
  const page = await asked(server);
  const denied = card("output-denied", { approved: false });
  server.stored = storedAs("ready", [USER, denied]);
  server.posts.push(refuses(status, code, "Somebody was first."));
  await page.does((chat) => chat.approve("approval-c1"));
  await page.does((chat) => chat.approve("approval-c2"));
  await page.shows(() => expect(page.states).toEqual(["output-denied"]));

  expect(page.chat.error).toMatchObject({ message: "Somebody was first.", status, code });
  expect(page.chat.refusal).toEqual({ error: page.chat.error });
  expect(server.sent).toHaveLength(2);
});

test("an answer that was refused and shows as open again is sent again", async () => {
  const server = new FakeServer();
  server.posts.push(streams(turn(step(gate("c1")))));
  server.posts.push(refuses(409, "turn_running", "Wait."), streams(turn(output("c1"), ANSWER)));
  server.stored = storedAs("waiting", [USER, card("approval-requested", {})]);
  const page = new Page(server);
  await page.does((chat) => chat.sendMessage({ text: "Pay." }));
  await page.rests();
  await page.does((chat) => chat.approve("approval-c1"));
  await page.shows(() => expect(page.chat.pending).toHaveLength(1));
  await page.does((chat) => chat.approve("approval-c1"));
  await page.shows(() => expect(page.text).toBe("Done."));

  expect(server.sent).toHaveLength(3);
});

test("text that was refused is handed back", async () => {
  const server = new FakeServer();
  server.posts.push(refuses(409, "turn_running", "Wait for the answer."), streams(turn(ANSWER)));
  server.stored = storedAs("ready", [USER]);
  const page = new Page(server);
  await page.does((chat) => chat.sendMessage({ text: "And then?" }));
  await page.shows(() => expect(page.chat.refusal?.unsent).toBeDefined());

  expect(page.chat.refusal?.unsent?.parts).toEqual([{ type: "text", text: "And then?" }]);
  expect(page.chat.messages).toEqual([USER]);
  await page.does((chat) => chat.sendMessage({ text: "And then?" }));
  await page.shows(() => expect(page.chat.refusal).toBeUndefined());
});

test("another refusal loads nothing", async () => {
  const server = new FakeServer();
  server.posts.push(refuses(429, "too_many_requests", "Slow down."));
  const page = new Page(server);
  await page.does((chat) => chat.sendMessage({ text: "Go." }));
  await page.rests("error");

  expect(page.chat.error?.message).toBe("Slow down.");
  expect(server.log.filter((line) => line.startsWith("GET /api/chats/"))).toEqual([]);
  expect(page.chat.messages).toHaveLength(1);
});

test("a page that opens joins the turn that runs, and nothing is doubled", async () => {
  const server = new FakeServer();
  const loaded = {
    id: "m1",
    role: "assistant",
    parts: [{ type: "step-start" }, { type: "text", text: "Do", state: "streaming" }],
  };
  server.resumed = streams(turn(ANSWER));
  const page = new Page(server, { messages: [USER, loaded] as never });
  await page.shows(() => expect(page.text).toBe("Done."));
  await page.rests();

  expect(page.chat.messages.map(({ id }) => id)).toEqual(["u1", "m1"]);
  expect(server.sent).toEqual([]);
});

test("an answer after a cut goes on where the server is, and nothing is doubled", async () => {
  const server = new FakeServer();
  const feed = new Feed();
  server.posts.push(feed.say);
  const page = new Page(server);
  await page.does((chat) => void chat.sendMessage({ text: "Go." }));
  feed.write([...turn(step(text("Do"))).slice(0, 4)]);
  await page.shows(() => expect(page.text).toBe("Do"));
  feed.cut();
  await page.rests("error");
  server.resumed = streams(turn(ANSWER));
  await page.does((chat) => chat.resumeStream());

  expect(page.text).toBe("Done.");
});
