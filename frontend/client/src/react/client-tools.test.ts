import { expect, test } from "vitest";
import {
  ANSWER,
  call,
  gate,
  output,
  request,
  step,
  text,
  turn,
  waits,
} from "../../testing/chunks.ts";
import { FakeServer, Feed, refuses, storedAs, streams } from "../../testing/fake-server.ts";
import { Page } from "../../testing/hook.ts";
import type { ClientToolCall, ClientTools } from "../client-tools.ts";

interface Ran {
  readonly input: unknown;
  readonly call: ClientToolCall;
}

/** A page tool `locate` that notes its calls. */
function locating(found: (ran: Ran) => unknown = () => ({ city: "Ulm" })): {
  ran: Ran[];
  clientTools: ClientTools;
} {
  const ran: Ran[] = [];
  const locate = (input: unknown, made: ClientToolCall): unknown => {
    ran.push({ input, call: made });
    return found({ input, call: made });
  };
  return { ran, clientTools: { locate } };
}

const CALLED = streams(waits(step(call("c1", "locate", { input: { exact: true } }))));
const USER = { id: "u1", role: "user", parts: [{ type: "text", text: "Where?" }] };

function loaded(state: string, more: object = {}): object {
  const part = { type: "tool-locate", toolCallId: "c1", state, input: {}, ...more };
  return { id: "m1", role: "assistant", parts: [{ type: "step-start" }, part] };
}

test("a call of the page is run once, and its output is sent", async () => {
  const server = new FakeServer();
  server.posts.push(CALLED, streams(turn(ANSWER)));
  const { ran, clientTools } = locating();
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.shows(() => expect(page.text).toBe("Done."));

  expect(ran).toHaveLength(1);
  expect(ran[0]).toMatchObject({
    input: { exact: true },
    call: { toolCallId: "c1", toolName: "locate" },
  });
  expect(JSON.stringify(server.sent[1]?.body)).toContain('"output":{"city":"Ulm"}');
  expect(server.sent).toHaveLength(2);
});

test.each([
  { title: "an Error", thrown: new Error("No signal."), told: "No signal." },
  { title: "anything else", thrown: "no", told: "It failed." },
])("$title that a tool of the page throws is told", async ({ thrown, told }) => {
  const server = new FakeServer();
  server.posts.push(CALLED, streams(turn(ANSWER)));
  const { clientTools } = locating(() => Promise.reject(thrown));
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.shows(() => expect(page.text).toBe("Done."));

  expect(page.parts.find((part) => part.toolCallId === "c1")).toMatchObject({
    state: "output-error",
    errorText: told,
  });
});

test("a tool of the page that gives nothing gives null", async () => {
  const server = new FakeServer();
  server.posts.push(CALLED, streams(turn(ANSWER)));
  const { clientTools } = locating(() => undefined);
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.shows(() => expect(server.sent).toHaveLength(2));

  expect(JSON.stringify(server.sent[1]?.body)).toContain('"output":null');
});

test("a call that asks is run after the yes, when the server has taken it", async () => {
  const server = new FakeServer();
  const again = { type: "tool-input-available", toolCallId: "c1", toolName: "locate", input: {} };
  server.posts.push(
    streams(waits(step(gate("c1", "locate")))),
    streams(waits(again)),
    streams(turn(ANSWER)),
  );
  const { ran, clientTools } = locating();
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.rests();
  expect(ran).toEqual([]);
  await page.does((chat) => chat.approve("approval-c1"));
  await page.shows(() => expect(page.text).toBe("Done."));

  expect(ran).toHaveLength(1);
  expect(server.sent).toHaveLength(3);
});

test("a call that asks is not run after a no", async () => {
  const server = new FakeServer();
  const denial = { type: "tool-output-denied", toolCallId: "c1" };
  server.posts.push(streams(waits(step(gate("c1", "locate")))), streams(turn(denial, ANSWER)));
  const { ran, clientTools } = locating();
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.rests();
  await page.does((chat) => chat.deny("approval-c1"));
  await page.shows(() => expect(page.text).toBe("Done."));

  expect(ran).toEqual([]);
});

test("nothing is run before the end of a response, where a request may still come", async () => {
  const server = new FakeServer();
  const feed = new Feed();
  server.posts.push(feed.say);
  const { ran, clientTools } = locating();
  const page = new Page(server, { clientTools });
  await page.does((chat) => void chat.sendMessage({ text: "Where?" }));
  feed.write(turn(step(call("c1", "locate"))).slice(0, 3));
  await page.shows(() => expect(page.states).toEqual(["input-available"]));
  await page.does((chat) => chat.leave());

  expect(page.chat.status).toBe("ready");
  expect(ran).toEqual([]);
});

test("a call beside a request is run at once and sent with the answer", async () => {
  const server = new FakeServer();
  server.posts.push(
    streams(waits(step(call("c1", "locate"), call("c2"), request("c2")))),
    streams(turn(output("c2"), ANSWER)),
  );
  const { ran, clientTools } = locating();
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.shows(() => expect(page.states).toEqual(["output-available", "approval-requested"]));
  expect([ran.length, server.sent.length]).toEqual([1, 1]);
  await page.does((chat) => chat.approve("approval-c2"));
  await page.shows(() => expect(page.text).toBe("Done."));

  expect(server.sent).toHaveLength(2);
});

test("a stop lets a tool of the page know and drops its output", async () => {
  const server = new FakeServer();
  server.posts.push(CALLED);
  const sealed = loaded("output-error", { errorText: "Stopped." });
  server.stored = storedAs("ready", [USER, sealed]);
  let finish: (found: unknown) => void = () => {};
  const { ran, clientTools } = locating(() => new Promise((resolve) => (finish = resolve)));
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.shows(() => expect(ran).toHaveLength(1));
  await page.does((chat) => chat.stop());
  await page.does(() => finish({ city: "Ulm" }));

  expect(ran[0]?.call.signal.aborted).toBe(true);
  expect(page.chat.messages).toEqual([USER, sealed]);
  expect(server.sent).toHaveLength(1);
});

test.each([
  { title: "an open call", state: "input-available", more: {} },
  {
    title: "a call that was approved",
    state: "approval-responded",
    more: { approval: { id: "a1", approved: true } },
  },
])("$title of a chat that was loaded is run when nothing runs on the server", async (row) => {
  const server = new FakeServer();
  server.posts.push(streams(turn(ANSWER)));
  const { ran, clientTools } = locating();
  const messages = [USER, loaded(row.state, row.more)];
  const page = new Page(server, { clientTools, messages: messages as never });
  await page.shows(() => expect(page.text).toBe("Done."));

  expect([ran.length, server.sent.length]).toEqual([1, 1]);
});

test("nothing is run for a page that has gone", async () => {
  const server = new FakeServer();
  let answer: (response: Response) => void = () => {};
  server.resumed = () => new Promise((resolve) => (answer = resolve));
  const { ran, clientTools } = locating();
  const messages = [USER, loaded("input-available")];
  const page = new Page(server, { clientTools, messages: messages as never });
  await page.shows(() => expect(server.log).toHaveLength(2));
  page.rendered.unmount();
  await page.does(() => answer(new Response(null, { status: 204 })));

  expect(ran).toEqual([]);
});

test("a call that is decided here and not yet sent is not run", async () => {
  const server = new FakeServer();
  server.posts.push(streams(waits(step(gate("c1", "locate"), gate("c2")))));
  const { ran, clientTools } = locating();
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.rests();
  await page.does((chat) => chat.approve("approval-c1"));
  await page.does((chat) => chat.resumeStream());

  expect(page.states).toEqual(["approval-responded", "approval-requested"]);
  expect(ran).toEqual([]);
});

test("an output that is refused is not made and sent again and again", async () => {
  const server = new FakeServer();
  server.posts.push(CALLED, refuses(409, "superseded", "It is over."));
  server.stored = storedAs("waiting", [USER, loaded("input-available")]);
  const { ran, clientTools } = locating();
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.shows(() => expect(page.chat.refusal).toBeDefined());
  await page.shows(() => expect(page.states).toEqual(["input-available"]));

  expect([ran.length, server.sent.length]).toEqual([1, 2]);
});

test("a tool that has no name here is left alone", async () => {
  const server = new FakeServer();
  server.posts.push(streams(waits(step(call("c1", "toString"), text("So.")))));
  const { clientTools } = locating();
  const page = new Page(server, { clientTools });
  await page.does((chat) => chat.sendMessage({ text: "Where?" }));
  await page.rests();

  expect(page.states).toEqual(["input-available"]);
});
