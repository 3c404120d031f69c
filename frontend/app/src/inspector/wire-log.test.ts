import type { UIMessage, UIMessageChunk } from "ai";
import { expect, test } from "vitest";
import { WireLog, WireRecorder } from "./wire-log.ts";

const userMessage: UIMessage = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay" }] };
const answer: UIMessage = { id: "a1", role: "assistant", parts: [] };
const start: UIMessageChunk = { type: "start", messageId: "a1" };

function createRecorder() {
  const log = new WireLog();
  return { log, recorder: new WireRecorder(log) };
}

test("a recording is a header and numbered entries", () => {
  const { log, recorder } = createRecorder();
  recorder.send(
    { id: "c1", trigger: "submit-message", messages: [answer, userMessage] },
    "preview",
  );
  recorder.chunk(start);
  recorder.send(
    {
      id: "c1",
      trigger: "submit-message",
      messageId: "a1",
      edits: { ap1: { amount: 5 } },
      messages: [userMessage, answer],
      decoration: true,
    },
    "preview",
  );
  recorder.frame("server", { type: "end" });
  recorder.stop("c1", "preview");
  const [header, ...entries] = log
    .recording("c1")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(header).toEqual({
    format: "sluicegate-recording",
    version: 1,
    created: expect.stringMatching(/^\d{4}-.*Z$/),
    redaction: [],
    app: "page",
    chat: "c1",
  });
  const headers = { "x-ai-sdk": "7", "x-release": "preview" };
  const request = { id: "c1", trigger: "submit-message", headers };
  expect(entries.map(({ delta_ms, ...entry }) => entry)).toEqual([
    {
      seq: 1,
      turn: 1,
      dir: "client",
      kind: "request",
      body: { type: "send", ...request, message: userMessage },
    },
    { seq: 2, turn: 1, dir: "server", kind: "chunk", body: start },
    {
      seq: 3,
      turn: 2,
      dir: "client",
      kind: "request",
      body: {
        type: "send",
        ...request,
        messageId: "a1",
        edits: { ap1: { amount: 5 } },
        message: answer,
      },
    },
    { seq: 4, turn: 2, dir: "server", kind: "frame", body: { type: "end" } },
    {
      seq: 5,
      turn: 3,
      dir: "client",
      kind: "request",
      body: { type: "stop", id: "c1", headers },
    },
  ]);
  expect(entries.every(({ delta_ms }) => Number.isInteger(delta_ms) && delta_ms >= 0)).toBe(true);
});

test("a user message clears the log, a decision does not", () => {
  const { log, recorder } = createRecorder();
  const send = { id: "c1", trigger: "submit-message" };
  recorder.send({ ...send, messages: [userMessage] }, "");
  recorder.send({ ...send, messages: [userMessage, answer] }, "");
  expect(log.count()).toBe(2);
  recorder.send({ ...send, messages: [userMessage, answer, userMessage] }, "");
  expect(log.count()).toBe(1);
});
