import { barriers } from "./barriers.ts";
import { listenIn, playedHertz, silencedBy } from "./loudspeaker.ts";
import { expect, test } from "./test.ts";

/** The tone of the file that stands for the microphone. */
const HEARD = "a tone of 440 Hz";

test("a spoken request asks, a yes pays once, and the spoken answer is heard and kept", async ({
  chat,
  server,
}) => {
  const before = await server.effects();
  await listenIn(chat.page);
  // The connection is there before somebody speaks.
  await chat.open({ transport: "bidi" });
  await chat.page.getByRole("button", { name: "Speak" }).click();
  await expect(chat.card("Send money")).toContainText("Ada");
  expect((await server.effects()).length).toBe(before.length);
  expect(await barriers(chat.page)).toEqual([]);
  await chat.approve("Send money");
  await expect.poll(() => playedHertz(chat.page), { intervals: [50] }).toBeCloseTo(520, -1);
  await expect(chat.answer).toContainText("The payment is settled, as you said.");
  expect((await server.effects()).length - before.length).toBe(1);
  const id = new URLSearchParams(chat.chat).get("chat");
  const stored = await chat.page.request.get(`${server.url}/api/chats/${id}`);
  const { messages } = await stored.json();
  expect(messages[0]).toMatchObject({ role: "user", parts: [{ type: "text", text: HEARD }] });
  expect(JSON.stringify(messages[1])).toContain("The payment is settled, as you said.");
  expect(JSON.stringify(messages[1])).toContain("output-available");
  await chat.page.getByRole("button", { name: "Hang up" }).click();
});

test("an interruption is silent within a fifth of a second", async ({ chat }) => {
  await listenIn(chat.page);
  await chat.open();
  await chat.page.getByRole("button", { name: "Speak" }).click();
  await chat.page.getByRole("region", { name: "Voice" }).waitFor();
  await chat.say("Hum for a while");
  await expect.poll(() => playedHertz(chat.page), { intervals: [50] }).toBeCloseTo(300, -1);
  expect(await silencedBy(chat.page, "Interrupt")).toBeLessThan(200);
  await expect(chat.page.getByRole("button", { name: "Interrupt" })).toBeDisabled();
});
