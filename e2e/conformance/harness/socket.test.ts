import { expect, test } from "vitest";
import { judges } from "./kit.ts";
import { Recorder } from "./recorder.ts";
import { STEP, STEP_END, text, turn } from "./scripted.ts";
import { SocketTurns } from "./socket.ts";
import type { Chunk } from "./sse.ts";
import { Bell } from "./waiting.ts";

const PLAIN = turn("stop", STEP, text("Hello."), STEP_END);

function recorded(type: "send" | "resume"): { recorder: Recorder; turns: SocketTurns } {
  const recorder = new Recorder({ judges: judges("7"), bell: new Bell(), mostPosts: 1 });
  const turns = new SocketTurns(recorder);
  turns.sent(JSON.stringify({ type, requestId: "r1", id: "c1", messages: [] }));
  return { recorder, turns };
}

function frame(type: string, more: object = {}): string {
  return JSON.stringify({ type, requestId: "r1", ...more });
}

function framed(chunks: readonly Chunk[]): string[] {
  return chunks.map((chunk, sequence) => frame("chunk", { sequence, chunk }));
}

const REFUSED = { errorText: "It is over.", code: "superseded" };

test("a send is a post with its body, its chunks and its end", async () => {
  const { recorder, turns } = recorded("send");
  for (const said of framed(PLAIN)) turns.came(said);
  expect(recorder.isBusy).toBe(true);
  turns.came(frame("end"));
  expect(recorder.isBusy).toBe(false);
  expect(recorder.posts[0]).toMatchObject({ status: 200, chunks: PLAIN, body: { id: "c1" } });
  expect(await recorder.faults()).toEqual([]);
});

test.each<[string, "send" | "resume", string[], object]>([
  ["a refusal has the status of HTTP", "send", [frame("error", REFUSED)], { status: 409 }],
  ["nothing to resume is 204", "resume", [frame("no-active")], { status: 204 }],
  ["a resume starts", "resume", [frame("start"), ...framed(PLAIN), frame("end")], { status: 200 }],
])("%s", async (_, kind, said, wanted) => {
  const { recorder, turns } = recorded(kind);
  for (const text of said) turns.came(text);
  expect(recorder.turns[0]).toMatchObject({ ...wanted, ended: true });
  expect(await recorder.faults()).toEqual([]);
});

test.each<[string, "send" | "resume", string[], RegExp]>([
  ["a gap", "send", framed(PLAIN).slice(1), /sequence 1 instead of 0/],
  ["a chunk twice", "send", framed(PLAIN).slice(0, 1).concat(framed(PLAIN)), /sequence 0/],
  ["no-active on a send", "send", [frame("no-active")], /no-active on a send/],
  ["a start on a send", "send", [frame("start")], /out of place/],
  ["chunks of a resume without a start", "resume", framed(PLAIN), /no start/],
  ["an end without chunks", "send", [frame("end")], /without any chunk/],
  ["a frame after the end", "send", [...framed(PLAIN), frame("end"), frame("end")], /after the/],
  ["an error after chunks", "send", [...framed(PLAIN), frame("error", REFUSED)], /after chunks/],
  ["an error without a sentence", "send", [frame("error", { code: "x" })], /without a sentence/],
  ["another frame", "send", [frame("ready")], /not a frame/],
  ["a bad chunk", "send", framed([{ type: "unheard-of" }]), /is not valid/],
])("is a fault: %s", async (_, kind, said, fault) => {
  const { recorder, turns } = recorded(kind);
  for (const text of said) turns.came(text);
  expect((await recorder.faults()).join("\n")).toMatch(fault);
});

test("an abort and a broken socket end what is open", () => {
  for (const end of [
    (turns: SocketTurns): void => turns.sent(frame("abort")),
    (turns: SocketTurns): void => turns.closed(),
  ]) {
    const { recorder, turns } = recorded("send");
    turns.came(framed(PLAIN)[0] ?? "");
    end(turns);
    expect(recorder.isBusy).toBe(false);
  }
});

test("heartbeats and requests of nobody are not looked at", async () => {
  const { recorder, turns } = recorded("send");
  turns.came(JSON.stringify({ type: "heartbeat", requestId: "-" }));
  turns.came(JSON.stringify({ type: "chunk", requestId: "r2", sequence: 7 }));
  expect(await recorder.faults()).toEqual([]);
});

test("a post too many does not go out", () => {
  const { turns } = recorded("send");
  expect(() => turns.sent(frame("send"))).toThrow(/loops/);
});
