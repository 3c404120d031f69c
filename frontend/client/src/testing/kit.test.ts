import { expect, test } from "vitest";
import * as ai7 from "../../../../e2e/conformance/clients/ai-7/client.ts";
import { whenIdle } from "../../testing/when-idle.ts";
import { createSseTransport } from "../sse.ts";
import { createWebSocketTransport } from "../websocket.ts";
import {
  ANSWER,
  type Chunk,
  gatedCall,
  output,
  progressDone,
  RecordingFetch,
  refusal,
  ruleFaults,
  ScriptedServer,
  ScriptedSockets,
  STEP,
  STEP_END,
  s2Sse,
  step,
  streamOf,
  text,
  turn,
  waitingTurn,
} from "./index.ts";

const ASKED = waitingTurn(step(gatedCall("c1")));
const PAID = turn(progressDone("c1"), STEP, text("Paid."), output("c1"), STEP_END);

/** Ask, approve, and return the requests and the responses that the page has seen. */
async function approvedChat(...responses: Chunk[][]) {
  const server = new ScriptedServer();
  server.postResponders.push(...responses.map(streamOf));
  const recorded = new RecordingFetch(server.fetch);
  const chat = new ai7.Chat({
    transport: createSseTransport({ ai: ai7, api: "/api/chat", fetch: recorded.fetch }),
    sendAutomaticallyWhen: s2Sse,
  });
  await chat.sendMessage({ text: "Pay." });
  await whenIdle(chat);
  await chat.addToolApprovalResponse({ id: "approval-c1", approved: true });
  await whenIdle(chat);
  return { chat, server, turns: await recorded.turns() };
}

test("a page is tested against a scripted server, and the responses against the rules", async () => {
  const { chat, server, turns } = await approvedChat(ASKED, PAID);
  expect(chat.status).toBe("ready");
  expect(server.posts.map(({ body }) => body.id)).toEqual([chat.id, chat.id]);
  expect(turns).toEqual([ASKED, PAID]);
  expect(ruleFaults({ turns, release: "deferred", message: chat.lastMessage })).toEqual([]);
});

test("a response that breaks a rule is reported by the id of the rule", async () => {
  const early = waitingTurn(STEP, text("I will pay."), gatedCall("c1"), STEP_END);
  const { chat, turns } = await approvedChat(early, PAID);
  const [fault] = ruleFaults({ turns, release: "deferred", message: chat.lastMessage });
  expect(fault).toBe("D1: turn 1 has text-start before the last decision");
});

test("a refusal is not recorded as a response", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(refusal(503, "unavailable", "Try again later."));
  const recorded = new RecordingFetch(server.fetch);
  expect((await recorded.fetch("/api/chat", { method: "POST" })).status).toBe(503);
  expect(await recorded.turns()).toEqual([]);
});

test("a page is tested against scripted sockets", async () => {
  const sockets = new ScriptedSockets();
  sockets.onFrame = (socket, { type, requestId }) => {
    if (type !== "send") return;
    socket.emitChunks(requestId, turn(ANSWER));
    socket.emitFrame({ type: "end", requestId });
  };
  const { webSocket } = sockets;
  const transport = createWebSocketTransport({ ai: ai7, api: "https://page/api/chat", webSocket });
  const chat = new ai7.Chat({ transport });
  await chat.sendMessage({ text: "Hello." });
  await whenIdle(chat);
  expect(sockets.frames.map(({ type }) => type)).toEqual(["send"]);
  expect(chat.lastMessage?.parts.at(-1)).toMatchObject({ type: "text", text: "Done." });
});
