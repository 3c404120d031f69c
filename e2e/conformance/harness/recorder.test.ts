import { describe, expect, test } from "vitest";
import {
  STEP,
  STEP_END,
  scriptedFetch,
  sseResponse,
  text,
  turn,
} from "../../../frontend/client/src/testing/index.ts";
import { SDKS, type Version, validatorsFor } from "./ai-sdk.ts";
import { Recorder, trace } from "./recorder.ts";
import { type Chunk, SseParser } from "./sse-parser.ts";
import { ChangeNotifier, expectUnchanged, waitFor } from "./waiting.ts";

const PLAIN = turn(STEP, text("Hello."), STEP_END);

async function recorded(scripted: Response, version: Version = "7"): Promise<Recorder> {
  const recorder = new Recorder({
    validators: validatorsFor(version),
    changes: new ChangeNotifier(),
    maxPosts: 1,
    fetch: scriptedFetch([scripted]),
  });
  const response = await recorder.fetch("http://127.0.0.1/api/chat", { method: "POST" });
  await response.text();
  return recorder;
}

test("a recorder records the body, the chunks and the end of a response", async () => {
  const changes = new ChangeNotifier();
  const recorder = new Recorder({
    validators: validatorsFor("6"),
    changes,
    maxPosts: 1,
    fetch: scriptedFetch([PLAIN]),
  });
  const init = { method: "POST", body: JSON.stringify({ id: "chat" }) };
  const response = await recorder.fetch("http://127.0.0.1/api/chat", init);
  expect(recorder.isBusy).toBe(true);
  await response.text();
  await waitFor(() => !recorder.isBusy, "the end", { changes, describe: () => "" });
  expect(recorder.isBusy).toBe(false);
  expect(recorder.posts[0]).toMatchObject({ body: { id: "chat" }, chunks: PLAIN, status: 200 });
  expect(await recorder.faults()).toEqual([]);
  expect(trace(recorder.turns)).toContain("text-delta");
});

test("a recorder continues to read after the client has stopped", async () => {
  const changes = new ChangeNotifier();
  const recorder = new Recorder({
    validators: validatorsFor("7"),
    changes,
    maxPosts: 1,
    fetch: scriptedFetch([PLAIN]),
  });
  const response = await recorder.fetch("http://127.0.0.1/api/chat", { method: "POST" });
  await response.body?.cancel();
  await waitFor(() => !recorder.isBusy, "the end", { changes, describe: () => "" });
  expect(recorder.posts[0]?.chunks).toEqual(PLAIN);
  expect(await recorder.faults()).toEqual([]);
});

test("a recorder ends a loop", async () => {
  const recorder = await recorded(sseResponse(PLAIN));
  await expect(recorder.fetch("http://127.0.0.1/", { method: "POST" })).rejects.toThrow(/loops/);
  expect(recorder.isBusy).toBe(false);
});

test("the status and the code of a refusal are recorded", async () => {
  const headers = { "x-error-code": "already_decided" };
  const recorder = await recorded(new Response("No.", { status: 409, headers }));
  expect(recorder.posts[0]).toMatchObject({ status: 409, errorCode: "already_decided" });
});

describe("an invalid chunk is a fault", () => {
  const rows: [string, Version, Chunk][] = [
    ["an unknown type", "7", { type: "tool-result", toolCallId: "c1" }],
    ["null for an optional field", "7", { type: "text-start", id: "t1", providerMetadata: null }],
    ["a missing output", "7", { type: "tool-output-available", toolCallId: "c1" }],
    ["an unknown finish reason", "7", { type: "finish", finishReason: "STOP" }],
    ["a chunk of 7 for a 6 client", "6", { type: "reset-step" }],
    [
      "a decision for a 6 client",
      "6",
      { type: "tool-approval-response", approvalId: "a1", approved: true },
    ],
  ];
  test.each(rows)("%s", async (_, version, chunk) => {
    const recorder = await recorded(
      sseResponse([...PLAIN.slice(0, 1), chunk, ...PLAIN.slice(1)]),
      version,
    );
    expect((await recorder.faults()).join("\n")).toContain("is not valid");
  });

  test("chunks of AI SDK 7 are valid for its clients", async () => {
    const recorder = await recorded(
      sseResponse([...PLAIN.slice(0, 2), { type: "reset-step" }, STEP_END]),
    );
    expect(await recorder.faults()).toEqual([]);
  });
});

test("a missing header is a fault", async () => {
  const body = await sseResponse(PLAIN).text();
  const recorder = await recorded(new Response(body));
  expect((await recorder.faults()).join("\n")).toContain("x-vercel-ai-ui-message-stream");
});

describe("framing", () => {
  const DATA = 'data: {"type":"start"}\n\n';
  const END = "data: [DONE]\n\n";
  const rows: [string, string, string | undefined][] = [
    ["valid", `: open\n\n${DATA}: keep-alive\n\n${END}`, undefined],
    ["without a comment at the beginning", `${DATA}${END}`, "before the first comment"],
    ["without a terminator", `: open\n\n${DATA}`, "0 terminators"],
    ["with two terminators", `: open\n\n${DATA}${END}${END}`, "2 terminators"],
    ["with a chunk after the terminator", `: open\n\n${END}${DATA}`, "after the terminator"],
    ["truncated", `: open\n\n${DATA}${END}data: {`, "ends inside"],
    ["with two lines in one event", `: open\n\nevent: x\n${DATA}${END}`, "not one data line"],
    ["with invalid JSON", `: open\n\ndata: NaN}\n\n${END}`, "not JSON"],
  ];
  test.each(rows)("%s", (_, stream, fault) => {
    const reader = new SseParser();
    for (const character of stream) reader.feed(character);
    reader.end();
    if (fault === undefined) expect(reader.faults).toEqual([]);
    else expect(reader.faults.join("\n")).toContain(fault);
  });
});

describe("waiting", () => {
  const wait = (changes: ChangeNotifier, timeout: number) => ({
    changes,
    timeout,
    describe: () => "the state",
  });

  test("fails with the state after the timeout", async () => {
    await expect(waitFor(() => false, "an event", wait(new ChangeNotifier(), 20))).rejects.toThrow(
      /without an event\nthe state/,
    );
  });

  test("ends when the condition holds after a notification", async () => {
    const changes = new ChangeNotifier();
    let isTrue = false;
    const waited = waitFor(() => isTrue, "it", wait(changes, 30_000));
    isTrue = true;
    changes.notify();
    await waited;
  });

  test("rejects with the error of the condition", async () => {
    const condition = (): boolean => {
      throw new Error("too many");
    };
    await expect(waitFor(condition, "it", wait(new ChangeNotifier(), 30_000))).rejects.toThrow(
      "too many",
    );
  });

  test("for no change detects a change", async () => {
    let count = 0;
    const probe = (): string => String(count++);
    await expect(expectUnchanged(1, probe)).rejects.toThrow(/while idle/);
    await expectUnchanged(1, () => "same");
  });
});

test("chunks for AI SDK 7 are validated by 7, those for 6 by both majors", () => {
  expect(validatorsFor("7")).toEqual([SDKS["7"]]);
  expect(validatorsFor("6")).toEqual([SDKS["6"], SDKS["7"]]);
});
