import type { UIMessage, UIMessageChunk } from "ai";
import { expect, test } from "vitest";
import { Inspection } from "./inspection.ts";
import { WireLog } from "./log.ts";

const said: UIMessage = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay" }] };
const asked: UIMessage = { id: "a1", role: "assistant", parts: [] };
const start: UIMessageChunk = { type: "start", messageId: "a1" };

function inspected() {
  const log = new WireLog();
  const heard: UIMessageChunk[] = [];
  const inspection = new Inspection(log, (chunk) => heard.push(chunk));
  inspection.release = "preview";
  return { log, heard, inspection };
}

test("a recording is a header and then what happened, numbered from 1", () => {
  const { log, heard, inspection } = inspected();
  inspection.send({ id: "c1", trigger: "submit-message", messages: [asked, said] });
  inspection.chunk(start);
  inspection.send({
    id: "c1",
    trigger: "submit-message",
    messageId: "a1",
    edits: { ap1: { amount: 5 } },
    messages: [said, asked],
    decoration: true,
  });
  inspection.frame("server", { type: "end" });
  inspection.stop("c1");
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
      body: { type: "send", ...request, message: said },
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
        message: asked,
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
  expect(heard).toEqual([start]);
});

test("another message of the user begins anew, an answer to a card goes on", () => {
  const { log, inspection } = inspected();
  const send = { id: "c1", trigger: "submit-message" };
  inspection.send({ ...send, messages: [said] });
  inspection.send({ ...send, messages: [said, asked] });
  expect(log.count()).toBe(2);
  inspection.send({ ...send, messages: [said, asked, said] });
  expect(log.count()).toBe(1);
});
