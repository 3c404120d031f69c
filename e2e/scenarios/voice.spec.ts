import { writeFileSync } from "node:fs";
import { accessibilityViolations } from "./accessibility.ts";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";
import { test as base, expect } from "./fixtures.ts";
import { millisecondsUntilSilence, observeLoudspeaker, playedHertz } from "./loudspeaker.ts";

/** The transcript of the tone in the file of the fake microphone. */
const TRANSCRIPT = "a tone of 440 Hz";
/** The spoken payment of the demo, whose last answer still sounds when a busy machine listens. */
const SPOKEN_PAYMENT = [
  {
    parts: [
      { audio: { tone_hz: 660, seconds: 0.4 } },
      { transcript: { role: "model", text: "I have heard you." } },
      { call: { name: "process_payment", args: { recipient: "Ada", amount: 50 } } },
    ],
  },
  {
    parts: [
      { audio: { tone_hz: 520, seconds: 20 } },
      { transcript: { role: "model", text: "The payment is settled, as you said." } },
    ],
  },
];

const test = base.extend({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright requires the pattern to find the dependencies of a fixture.
  ownServer: async ({}, use, info) => {
    const script = info.outputPath("script.json");
    const scenarios = [{ match: TRANSCRIPT, responses: SPOKEN_PAYMENT }];
    writeFileSync(script, JSON.stringify({ scenarios }));
    const server = await DemoServer.start("--model-script", script);
    await use(server);
    await server.close();
  },
});

test("a spoken request is approved and pays once, and its spoken answer is played and stored", async ({
  chat: { page },
  ownServer: server,
}) => {
  const chat = new ChatPage(page, server);
  await observeLoudspeaker(page);
  // The connection is open before the voice starts.
  await chat.open({ transport: "bidi" });
  await chat.page.getByRole("button", { name: "Speak" }).click();
  await expect(chat.card("Send money")).toContainText("Ada");
  await expect(chat.page.getByRole("region", { name: "Voice" })).toContainText(
    "listening, waits for your approval",
  );
  expect(await server.effects()).toEqual([]);
  expect(await accessibilityViolations(chat.page)).toEqual([]);
  await chat.approve("Send money");
  await expect.poll(() => playedHertz(chat.page), { intervals: [50] }).toBeCloseTo(520, -1);
  await expect(chat.answer).toContainText("The payment is settled, as you said.");
  expect(await server.effects()).toHaveLength(1);
  const id = new URLSearchParams(chat.query).get("chat");
  const stored = await chat.page.request.get(`${server.url}/api/chats/${id}`);
  const { messages } = await stored.json();
  expect(messages[0]).toMatchObject({ role: "user", parts: [{ type: "text", text: TRANSCRIPT }] });
  expect(JSON.stringify(messages[1])).toContain("The payment is settled, as you said.");
  expect(JSON.stringify(messages[1])).toContain("output-available");
  await chat.page.getByRole("button", { name: "Hang up" }).click();
});

test("an interruption is silent within 200 milliseconds of audio", async ({ chat }) => {
  await observeLoudspeaker(chat.page);
  await chat.open();
  await chat.page.getByRole("button", { name: "Speak" }).click();
  await chat.page.getByRole("region", { name: "Voice" }).waitFor();
  await chat.page.getByRole("button", { name: "Mute" }).click();
  await expect(chat.page.getByRole("region", { name: "Voice" })).toContainText("muted");
  expect(await accessibilityViolations(chat.page)).toEqual([]);
  await chat.page.getByRole("button", { name: "Mute" }).click();
  await chat.send("Hum for a while");
  await expect.poll(() => playedHertz(chat.page), { intervals: [50] }).toBeCloseTo(300, -1);
  expect(await millisecondsUntilSilence(chat.page, "Interrupt")).toBeLessThan(200);
  await expect(chat.page.getByRole("button", { name: "Interrupt" })).toBeDisabled();
});

test("the code of the voice is loaded when the voice is first used", async ({ chat, server }) => {
  const scripts: Promise<string>[] = [];
  chat.page.on("response", (response) => {
    if (response.request().resourceType() === "script") scripts.push(response.text());
  });
  const loaded = async () => (await Promise.all(scripts)).join("");
  // Each is in the code of the microphone, and in that of the live transport.
  const names = ["getUserMedia", "sluicegate.live.v1"];
  await chat.open();
  await chat.send("Hello!");
  await chat.waitForEnd();
  for (const name of names) expect(await loaded()).not.toContain(name);
  const before = await server.effects();
  await chat.page.getByRole("button", { name: "Speak" }).click();
  await expect(chat.card("Send money")).toContainText("Ada");
  for (const name of names) expect(await loaded()).toContain(name);
  await chat.approve("Send money");
  await expect(chat.answer).toContainText("The payment is settled, as you said.");
  expect((await server.effects()).length - before.length).toBe(1);
  await chat.page.getByRole("button", { name: "Hang up" }).click();
});
