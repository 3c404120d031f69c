import { expect, test } from "vitest";
import { STEP, STEP_END, text, turn } from "../../../frontend/client/src/testing/index.ts";
import { validatorsFor } from "./ai-sdk.ts";
import { SocketTurns } from "./recorded-socket.ts";
import { Recorder } from "./recorder.ts";
import type { Chunk } from "./sse-parser.ts";
import { ChangeNotifier } from "./waiting.ts";

const PLAIN = turn(STEP, text("Hello."), STEP_END);

function recorded(type: "send" | "resume"): { recorder: Recorder; turns: SocketTurns } {
  const recorder = new Recorder({
    validators: validatorsFor("7"),
    changes: new ChangeNotifier(),
    maxPosts: 1,
  });
  const turns = new SocketTurns(recorder);
  turns.onSend(JSON.stringify({ type, requestId: "r1", id: "c1", messages: [] }));
  return { recorder, turns };
}

function frame(type: string, more: object = {}): string {
  return JSON.stringify({ type, requestId: "r1", ...more });
}

function framed(chunks: readonly Chunk[]): string[] {
  return chunks.map((chunk, sequence) => frame("chunk", { sequence, chunk }));
}

const REFUSAL = { errorText: "It is over.", code: "superseded" };

test("a send is recorded as a post with its body, chunks and end", async () => {
  const { recorder, turns } = recorded("send");
  for (const message of framed(PLAIN)) turns.onMessage(message);
  expect(recorder.isBusy).toBe(true);
  turns.onMessage(frame("end"));
  expect(recorder.isBusy).toBe(false);
  expect(recorder.posts[0]).toMatchObject({ status: 200, chunks: PLAIN, body: { id: "c1" } });
  expect(await recorder.faults()).toEqual([]);
});

test.each<[string, "send" | "resume", string[], object]>([
  ["a refusal has its HTTP status", "send", [frame("error", REFUSAL)], { status: 409 }],
  ["nothing to resume is 204", "resume", [frame("no-active")], { status: 204 }],
  ["a resume starts", "resume", [frame("start"), ...framed(PLAIN), frame("end")], { status: 200 }],
])("%s", async (_, kind, messages, wanted) => {
  const { recorder, turns } = recorded(kind);
  for (const message of messages) turns.onMessage(message);
  expect(recorder.turns[0]).toMatchObject({ ...wanted, ended: true });
  expect(await recorder.faults()).toEqual([]);
});

test.each<[string, "send" | "resume", string[], RegExp]>([
  ["a gap", "send", framed(PLAIN).slice(1), /sequence 1 instead of 0/],
  ["a chunk twice", "send", framed(PLAIN).slice(0, 1).concat(framed(PLAIN)), /sequence 0/],
  ["no-active on a send", "send", [frame("no-active")], /no-active on a send/],
  ["a start on a send", "send", [frame("start")], /unexpected start/],
  ["chunks of a resume without a start", "resume", framed(PLAIN), /no start/],
  ["an end without chunks", "send", [frame("end")], /without any chunk/],
  ["a frame after the end", "send", [...framed(PLAIN), frame("end"), frame("end")], /after the/],
  ["an error after chunks", "send", [...framed(PLAIN), frame("error", REFUSAL)], /after chunks/],
  ["an error without a sentence", "send", [frame("error", { code: "x" })], /without a sentence/],
  ["an unknown frame", "send", [frame("ready")], /not a frame/],
  ["a bad chunk", "send", framed([{ type: "unknown" }]), /is not valid/],
])("is a fault: %s", async (_, kind, messages, fault) => {
  const { recorder, turns } = recorded(kind);
  for (const message of messages) turns.onMessage(message);
  expect((await recorder.faults()).join("\n")).toMatch(fault);
});

test("an abort and a closed socket end open requests", () => {
  for (const end of [
    (turns: SocketTurns): void => turns.onSend(frame("abort")),
    (turns: SocketTurns): void => turns.onClose(),
  ]) {
    const { recorder, turns } = recorded("send");
    turns.onMessage(framed(PLAIN)[0] ?? "");
    end(turns);
    expect(recorder.isBusy).toBe(false);
  }
});

test("heartbeats and frames of unknown requests are ignored", async () => {
  const { recorder, turns } = recorded("send");
  turns.onMessage(JSON.stringify({ type: "heartbeat", requestId: "-" }));
  turns.onMessage(JSON.stringify({ type: "chunk", requestId: "r2", sequence: 7 }));
  expect(await recorder.faults()).toEqual([]);
});

test("a post beyond the limit is not sent", () => {
  const { turns } = recorded("send");
  expect(() => turns.onSend(frame("send"))).toThrow(/loops/);
});
