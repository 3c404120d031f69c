import { describe, expect, test } from "vitest";
import { judges, kits, type Version } from "./kit.ts";
import { Recorder, trace } from "./recorder.ts";
import { STEP, STEP_END, scriptedFetch, sse, text, turn } from "./scripted.ts";
import { type Chunk, SseText } from "./sse.ts";
import { Bell, staysQuiet, waitFor } from "./waiting.ts";

const PLAIN = turn("stop", STEP, text("Hello."), STEP_END);

async function recorded(response: Response, version: Version = "7"): Promise<Recorder> {
  const recorder = new Recorder({
    judges: judges(version),
    bell: new Bell(),
    mostPosts: 1,
    inner: scriptedFetch([response]),
  });
  const answered = await recorder.fetch("http://127.0.0.1/api/chat", { method: "POST" });
  await answered.text();
  return recorder;
}

test("a recorder keeps the body, the chunks and the end of a response", async () => {
  const bell = new Bell();
  const recorder = new Recorder({
    judges: judges("6"),
    bell,
    mostPosts: 1,
    inner: scriptedFetch([PLAIN]),
  });
  const init = { method: "POST", body: JSON.stringify({ id: "chat" }) };
  const response = await recorder.fetch("http://127.0.0.1/api/chat", init);
  expect(recorder.isBusy).toBe(true);
  await response.text();
  await waitFor(() => !recorder.isBusy, "the end", { bell, describe: () => "" });
  expect(recorder.isBusy).toBe(false);
  expect(recorder.posts[0]).toMatchObject({ body: { id: "chat" }, chunks: PLAIN, status: 200 });
  expect(await recorder.faults()).toEqual([]);
  expect(trace(recorder.turns)).toContain("text-delta");
});

test("a recorder reads on when the client has stopped reading", async () => {
  const bell = new Bell();
  const recorder = new Recorder({
    judges: judges("7"),
    bell,
    mostPosts: 1,
    inner: scriptedFetch([PLAIN]),
  });
  const response = await recorder.fetch("http://127.0.0.1/api/chat", { method: "POST" });
  await response.body?.cancel();
  await waitFor(() => !recorder.isBusy, "the end", { bell, describe: () => "" });
  expect(recorder.posts[0]?.chunks).toEqual(PLAIN);
  expect(await recorder.faults()).toEqual([]);
});

test("a recorder ends a loop", async () => {
  const recorder = await recorded(sse(PLAIN));
  await expect(recorder.fetch("http://127.0.0.1/", { method: "POST" })).rejects.toThrow(/loops/);
  expect(recorder.isBusy).toBe(false);
});

test("a refusal's status and code are kept", async () => {
  const headers = { "x-error-code": "already_decided" };
  const recorder = await recorded(new Response("No.", { status: 409, headers }));
  expect(recorder.posts[0]).toMatchObject({ status: 409, errorCode: "already_decided" });
});

describe("a chunk that a client would not take is a fault", () => {
  const rows: [string, Version, Chunk][] = [
    ["an unknown type", "7", { type: "tool-result", toolCallId: "c1" }],
    ["null for an optional field", "7", { type: "text-start", id: "t1", providerMetadata: null }],
    ["an output that is not there", "7", { type: "tool-output-available", toolCallId: "c1" }],
    ["an unknown finish reason", "7", { type: "finish", finishReason: "STOP" }],
    ["a chunk of 7 for a 6 client", "6", { type: "reset-step" }],
    [
      "a decision for a 6 client",
      "6",
      { type: "tool-approval-response", approvalId: "a1", approved: true },
    ],
  ];
  test.each(rows)("%s", async (_, version, chunk) => {
    const recorder = await recorded(sse([...PLAIN.slice(0, 1), chunk, ...PLAIN.slice(1)]), version);
    expect((await recorder.faults()).join("\n")).toContain("is not valid");
  });

  test("while 7 takes what is its own", async () => {
    const recorder = await recorded(sse([...PLAIN.slice(0, 2), { type: "reset-step" }, STEP_END]));
    expect(await recorder.faults()).toEqual([]);
  });
});

test("a header that is not there is a fault", async () => {
  const body = await sse(PLAIN).text();
  const recorder = await recorded(new Response(body));
  expect((await recorder.faults()).join("\n")).toContain("x-vercel-ai-ui-message-stream");
});

describe("framing", () => {
  const DATA = 'data: {"type":"start"}\n\n';
  const END = "data: [DONE]\n\n";
  const rows: [string, string, string | undefined][] = [
    ["as promised", `: open\n\n${DATA}: keep-alive\n\n${END}`, undefined],
    ["without a comment at once", `${DATA}${END}`, "before the first comment"],
    ["without a terminator", `: open\n\n${DATA}`, "0 terminators"],
    ["with two terminators", `: open\n\n${DATA}${END}${END}`, "2 terminators"],
    ["with a chunk after the terminator", `: open\n\n${END}${DATA}`, "after the terminator"],
    ["cut in the middle", `: open\n\n${DATA}${END}data: {`, "ends inside"],
    ["with two lines in one event", `: open\n\nevent: x\n${DATA}${END}`, "not one data line"],
    ["with something that is not JSON", `: open\n\ndata: NaN}\n\n${END}`, "not JSON"],
  ];
  test.each(rows)("%s", (_, stream, fault) => {
    const reader = new SseText();
    for (const character of stream) reader.feed(character);
    reader.end();
    if (fault === undefined) expect(reader.faults).toEqual([]);
    else expect(reader.faults.join("\n")).toContain(fault);
  });
});

describe("waiting", () => {
  const wait = (bell: Bell, timeout: number) => ({ bell, timeout, describe: () => "the state" });

  test("ends with an error that shows the state when nothing comes", async () => {
    await expect(waitFor(() => false, "a miracle", wait(new Bell(), 20))).rejects.toThrow(
      /without a miracle\nthe state/,
    );
  });

  test("ends when the bell rings and the condition holds", async () => {
    const bell = new Bell();
    let came = false;
    const waited = waitFor(() => came, "it", wait(bell, 5_000));
    came = true;
    bell.ring();
    await waited;
  });

  test("passes on what the condition throws", async () => {
    const look = (): boolean => {
      throw new Error("too many");
    };
    await expect(waitFor(look, "it", wait(new Bell(), 5_000))).rejects.toThrow("too many");
  });

  test("for silence notices a change", async () => {
    let count = 0;
    const probe = (): string => String(count++);
    await expect(staysQuiet(1, probe)).rejects.toThrow(/while idle/);
    await staysQuiet(1, () => "same");
  });
});

test("each major judges its own clients, and both judge the older one's", () => {
  expect(judges("7")).toEqual([kits["7"]]);
  expect(judges("6")).toEqual([kits["6"], kits["7"]]);
});
