import { expect } from "vitest";
import { effectsOf } from "../harness/effects.ts";
import { CLOSED_LATER, inSequence, OVER_LIVE, together } from "../harness/matrix.ts";
import { calls, type Part, pendingApprovals } from "../harness/messages.ts";
import { SHORT_TTL } from "../harness/servers.ts";
import { story, type Talk } from "../harness/story.ts";

const SETTLED = {
  calls: [["pay", "output-available"]],
  texts: ["The payment is settled."],
  effects: { pay: 1 },
} as const;

/** See that the one post of a tab was refused, that it shows a sentence and gives up. */
async function isRefused(tab: Talk, status: number, code: string): Promise<void> {
  await tab.rests(1);
  expect(tab.recorder.posts[0]).toMatchObject({ status, errorCode: code });
  expect(tab.chat.status).toBe("error");
  expect(tab.chat.error?.message).toMatch(/^[A-Z].*\.$/);
  await tab.staysQuiet(300);
}

/** The last part of the stored answer. */
async function answer(talk: Talk): Promise<Part | undefined> {
  return (await talk.history()).messages[1]?.parts.at(-1);
}

story("the same answer twice in one tab", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:same_answer_twice");
  await talk.asks("pay");
  const id = talk.pending[0]?.approval?.id ?? "";
  await talk.chat.addToolApprovalResponse({ id, approved: true });
  await talk.waitFor(() => talk.recorder.posts.length === 2, "the second post");
  await talk.chat.addToolApprovalResponse({ id, approved: true });
  await talk.ends(SETTLED);
  await talk.chat.addToolApprovalResponse({ id, approved: true });
  await talk.ends(SETTLED);
});

story("the same answer again from another tab", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:same_answer_twice");
  await talk.asks("pay");
  const other = await talk.reloaded(1);
  await talk.approve("pay");
  await talk.ends(SETTLED);
  await other.approve("pay");
  await other.ends({ ...SETTLED, rebuilt: true, resumes: false });
});

story("the same answer from two tabs at once", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:same_answer_twice");
  await talk.asks("pay");
  const other = await talk.reloaded(1);
  await Promise.all([talk.approve("pay"), other.approve("pay")]);
  await talk.ends({ ...SETTLED, rebuilt: true, resumes: false });
  await other.ends({ ...SETTLED, rebuilt: true, resumes: false });
});

story("a contradicting answer", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:contradicting_answer");
  await talk.asks("pay");
  const other = await talk.reloaded(1);
  await talk.approve("pay");
  await talk.ends(SETTLED);
  await other.deny("pay");
  await isRefused(other, 409, "already_decided");
  await talk.ends(SETTLED);
});

story("a yes that contradicts a no", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:contradicting_answer");
  await talk.asks("pay");
  const other = await talk.reloaded(1);
  await talk.deny("pay");
  await talk.ends({ calls: [["pay", "output-denied"]] });
  await other.approve("pay");
  await isRefused(other, 409, "already_decided");
  await talk.ends({ calls: [["pay", "output-denied"]] });
});

story("an answer to a request that nobody made", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:forged_answer");
  await talk.asks("pay");
  const forged = JSON.parse(JSON.stringify(talk.chat.messages));
  const id = pendingApprovals(forged)[0]?.approval?.id ?? never();
  const messages = JSON.parse(JSON.stringify(forged).replaceAll(id, "forged"));
  const forger = talk.beside({ posts: 1, messages });
  await forger.approve("pay");
  await isRefused(forger, 404, "unknown");
  await talk.approve("pay");
  await talk.ends(SETTLED);
});

story("an answer in a chat that never was", { posts: 1 }, async (talk) => {
  const part = { type: "tool-pay", toolCallId: "c1", input: { amount: 5 } };
  const asked = { ...part, state: "approval-requested", approval: { id: "a1" } };
  const forger = talk.beside({
    posts: 1,
    messages: [
      { id: "u1", role: "user", parts: [{ type: "text", text: "story:forged_answer" }] },
      { id: "m1", role: "assistant", parts: [{ type: "step-start" }, asked] },
    ],
  });
  await forger.approve("pay");
  await isRefused(forger, 404, "unknown");
  await expect(forger.history()).rejects.toThrow(/404/);
  expect(await effectsOf(talk.place, talk.chatId)).toEqual([]);
});

story("arguments that the page has changed", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:forged_answer");
  await talk.asks("pay");
  const tampered = JSON.stringify(talk.chat.messages).replaceAll('"amount":5', '"amount":5000');
  const forger = talk.beside({ posts: 1, messages: JSON.parse(tampered) });
  await forger.approve("pay");
  await forger.ends({ ...SETTLED, stored: false, resumes: false });
  const effects = await effectsOf(talk.place, talk.chatId);
  expect(effects.map(({ args }) => args)).toEqual([{ amount: 5 }]);
});

story("somebody else's answer", { posts: inSequence(1) }, async (talk) => {
  talk.say("story:foreign_answer");
  await talk.asks("pay");
  const { messages } = await talk.history();
  const stranger = talk.beside({ posts: 1, messages, user: `stranger-${talk.chatId}` });
  await stranger.approve("pay");
  await isRefused(stranger, 404, "unknown");
  await expect(stranger.history()).rejects.toThrow(/404/);
  expect((await stranger.resume(messages)).attached).toBe(false);
  await talk.approve("pay");
  await talk.ends(SETTLED);
});

story("an expired yes", { posts: inSequence(1), combinations: CLOSED_LATER }, async (talk) => {
  talk.say("story:expired_answer");
  await talk.asks("pay_soon");
  await talk.staysQuiet(1_000 * SHORT_TTL + 100);
  await talk.approve("pay_soon");
  await talk.ends({
    calls: [["pay_soon", "output-error"]],
    texts: ["The payment is settled."],
  });
  const errors = talk.chat.messages.flatMap(calls).map(({ part }) => part.errorText);
  expect(errors).toEqual([expect.stringContaining("This approval expired")]);
});

story("an expired no", { posts: inSequence(1), combinations: CLOSED_LATER }, async (talk) => {
  talk.say("story:expired_answer");
  await talk.asks("pay_soon");
  await talk.staysQuiet(1_000 * SHORT_TTL + 100);
  await talk.deny("pay_soon");
  await talk.ends({
    calls: [["pay_soon", "output-denied"]],
    texts: ["The payment is settled."],
  });
});

story(
  "an answer after a live run has gone on without it",
  { posts: 2, combinations: OVER_LIVE },
  async (talk) => {
    talk.say("story:expired_answer");
    await talk.asks("pay_soon");
    while ((await answer(talk))?.text !== "The payment is settled.") await talk.staysQuiet(100);
    await talk.approve("pay_soon");
    await talk.rests(2);
    expect(talk.recorder.posts[1]).toMatchObject({ status: 409, errorCode: "superseded" });
    await talk.ends({
      calls: [["pay_soon", "approval-responded"]],
      status: "error",
      stored: false,
      resumes: false,
    });
    // What the refused answer asks for shows how it ended.
    const fresh = await talk.reloaded(0);
    const [card] = fresh.chat.messages.flatMap(calls);
    expect(card?.part).toMatchObject({
      state: "output-denied",
      approval: { approved: false, reason: "This approval expired." },
    });
  },
);

story("new text instead of an answer", { posts: 2 }, async (talk) => {
  talk.say("story:new_text");
  await talk.waitsFor("pay");
  const id = talk.pending[0]?.approval?.id ?? never();
  const [, before] = talk.chat.messages;
  talk.say("story:after");
  await talk.rests(2);
  const told = talk.data.filter(({ type }) => type === "data-approval").map(({ data }) => data);
  expect(told).toEqual([
    expect.objectContaining({ approvalId: id, messageId: before?.id, state: "superseded" }),
  ]);
  // The old card still looks open in a stock client; its button sends nothing.
  await talk.chat.addToolApprovalResponse({ id, approved: true });
  await talk.ends({ messages: 2, calls: [["pay", "approval-responded"]] });
  const reloaded = await talk.reloaded(0);
  const card = reloaded.chat.messages[1]?.parts.find((part) => part.approval !== undefined);
  expect(card).toMatchObject({ state: "output-denied", approval: { id, approved: false } });
});

story("an answer to a card that new text has closed", { posts: 2 }, async (talk) => {
  talk.say("story:new_text");
  await talk.asks("pay");
  const { messages } = await talk.history();
  talk.say("story:after");
  await talk.rests(2);
  const late = talk.beside({ posts: 1, messages });
  await late.approve("pay");
  await isRefused(late, 409, "superseded");
  await talk.ends({ messages: 2, calls: [["pay", "approval-requested"]] });
});

story("an answer after a reload", { posts: 1 }, async (talk) => {
  talk.say("story:reload");
  await talk.waitsFor("pay");
  const reloaded = await talk.reloaded(1);
  await reloaded.waitsFor("pay");
  await reloaded.approve("pay");
  await reloaded.ends({
    ...SETTLED,
    texts: ["I prepare the payment. ", "The payment is settled."],
  });
  expect(talk.recorder.posts.length).toBe(1);
});

story("each of two answers after a reload", { posts: 1 }, async (talk) => {
  talk.say("story:two_in_one_step");
  await talk.waitsFor("search", "update");
  const reloaded = await talk.reloaded(together(2)(talk.combination.rule) - 1);
  await reloaded.approve("search", "update");
  await reloaded.ends({
    calls: [
      ["search", "output-available"],
      ["update", "output-available"],
    ],
    effects: { search: 1, update: 1 },
  });
});

function never(): never {
  throw new Error("there is no such message");
}
