import { expect, vi } from "vitest";
import {
  CLOSED_LATER,
  EACH_TRANSPORT,
  inSequence,
  OVER_LIVE,
  together,
} from "../harness/matrix.ts";
import { calls, type Part, pendingApprovals } from "../harness/messages.ts";
import { effectsOf, SHORT_TTL } from "../harness/servers.ts";
import { type StoryTab, story } from "../harness/story.ts";

const SETTLED = {
  calls: [["pay", "output-available"]],
  texts: ["The payment is settled."],
  effects: { pay: 1 },
} as const;

/** Check that the post of a tab was refused, and that the client shows the error and is idle. */
async function expectRefusal(tab: StoryTab, status: number, code: string): Promise<void> {
  await tab.waitForPosts(1);
  expect(tab.recorder.posts[0]).toMatchObject({ status, errorCode: code });
  expect(tab.chat.status).toBe("error");
  expect(tab.chat.error?.message).toMatch(/^[A-Z].*\.$/);
  await tab.expectIdle(300);
}

/** The last part of the stored answer. */
async function lastStoredPart(tab: StoryTab): Promise<Part | undefined> {
  return (await tab.loadChat()).messages[1]?.parts.at(-1);
}

story("the same decision twice in one tab", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:same_answer_twice");
  await tab.waitForApprovals("pay");
  const id = tab.pending[0]?.approval?.id ?? "";
  await tab.chat.addToolApprovalResponse({ id, approved: true });
  await tab.waitFor(() => tab.recorder.posts.length === 2, "the second post");
  await tab.chat.addToolApprovalResponse({ id, approved: true });
  await tab.expectEnd(SETTLED);
  await tab.chat.addToolApprovalResponse({ id, approved: true });
  await tab.expectEnd(SETTLED);
});

story("the same decision again from another tab", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:same_answer_twice");
  await tab.waitForApprovals("pay");
  const other = await tab.reload(1);
  await tab.approve("pay");
  await tab.expectEnd(SETTLED);
  await other.approve("pay");
  await other.expectEnd({ ...SETTLED, replayed: true, resumes: false });
});

story("the same decision from two tabs at once", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:same_answer_twice");
  await tab.waitForApprovals("pay");
  const other = await tab.reload(1);
  await Promise.all([tab.approve("pay"), other.approve("pay")]);
  await tab.expectEnd({ ...SETTLED, replayed: true, resumes: false });
  await other.expectEnd({ ...SETTLED, replayed: true, resumes: false });
});

story("a denial after an approval", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:contradicting_answer");
  await tab.waitForApprovals("pay");
  const other = await tab.reload(1);
  await tab.approve("pay");
  await tab.expectEnd(SETTLED);
  await other.deny("pay");
  await expectRefusal(other, 409, "already_decided");
  await tab.expectEnd(SETTLED);
});

story("an approval after a denial", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:contradicting_answer");
  await tab.waitForApprovals("pay");
  const other = await tab.reload(1);
  await tab.deny("pay");
  await tab.expectEnd({ calls: [["pay", "output-denied"]] });
  await other.approve("pay");
  await expectRefusal(other, 409, "already_decided");
  await tab.expectEnd({ calls: [["pay", "output-denied"]] });
});

story("a decision on an unknown approval", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:forged_answer");
  await tab.waitForApprovals("pay");
  const forged = JSON.parse(JSON.stringify(tab.chat.messages));
  const id = pendingApprovals(forged)[0]?.approval?.id ?? missing();
  const messages = JSON.parse(JSON.stringify(forged).replaceAll(id, "forged"));
  const forger = tab.openTab({ posts: 1, messages });
  await forger.approve("pay");
  await expectRefusal(forger, 404, "unknown");
  await tab.approve("pay");
  await tab.expectEnd(SETTLED);
});

story("a decision in an unknown chat", { posts: 1 }, async (tab) => {
  const part = { type: "tool-pay", toolCallId: "c1", input: { amount: 5 } };
  const pendingPart = { ...part, state: "approval-requested", approval: { id: "a1" } };
  const forger = tab.openTab({
    posts: 1,
    messages: [
      { id: "u1", role: "user", parts: [{ type: "text", text: "story:forged_answer" }] },
      { id: "m1", role: "assistant", parts: [{ type: "step-start" }, pendingPart] },
    ],
  });
  await forger.approve("pay");
  await expectRefusal(forger, 404, "unknown");
  await expect(forger.loadChat()).rejects.toThrow(/404/);
  expect(await effectsOf(tab.server, tab.chatId)).toEqual([]);
});

story("arguments that the client has tampered with", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:forged_answer");
  await tab.waitForApprovals("pay");
  const tampered = JSON.stringify(tab.chat.messages).replaceAll('"amount":5', '"amount":5000');
  const forger = tab.openTab({ posts: 1, messages: JSON.parse(tampered) });
  await forger.approve("pay");
  await forger.expectEnd({ ...SETTLED, stored: false, resumes: false });
  const effects = await effectsOf(tab.server, tab.chatId);
  expect(effects.map(({ args }) => args)).toEqual([{ amount: 5 }]);
});

story("a decision of another user", { posts: inSequence(1) }, async (tab) => {
  tab.send("story:foreign_answer");
  await tab.waitForApprovals("pay");
  const { messages } = await tab.loadChat();
  const stranger = tab.openTab({ posts: 1, messages, user: `stranger-${tab.chatId}` });
  await stranger.approve("pay");
  await expectRefusal(stranger, 404, "unknown");
  await expect(stranger.loadChat()).rejects.toThrow(/404/);
  expect((await stranger.resume(messages)).attached).toBe(false);
  await tab.approve("pay");
  await tab.expectEnd(SETTLED);
});

story(
  "an approval after the deadline",
  { posts: inSequence(1), combinations: CLOSED_LATER },
  async (tab) => {
    tab.send("story:expired_answer");
    await tab.waitForApprovals("pay_soon");
    await tab.expectIdle(1_000 * SHORT_TTL + 100);
    await tab.approve("pay_soon");
    await tab.expectEnd({
      calls: [["pay_soon", "output-error"]],
      texts: ["The payment is settled."],
    });
    const errors = tab.chat.messages.flatMap(calls).map(({ part }) => part.errorText);
    expect(errors).toEqual([expect.stringContaining("This approval expired")]);
  },
);

story(
  "a denial after the deadline",
  { posts: inSequence(1), combinations: CLOSED_LATER },
  async (tab) => {
    tab.send("story:expired_answer");
    await tab.waitForApprovals("pay_soon");
    await tab.expectIdle(1_000 * SHORT_TTL + 100);
    await tab.deny("pay_soon");
    await tab.expectEnd({
      calls: [["pay_soon", "output-denied"]],
      texts: ["The payment is settled."],
    });
  },
);

story(
  "a decision after a live run has continued without it",
  { posts: 2, combinations: OVER_LIVE },
  async (tab) => {
    tab.send("story:expired_answer");
    await tab.waitForApprovals("pay_soon");
    await vi.waitFor(
      async () => {
        expect((await lastStoredPart(tab))?.text).toBe("The payment is settled.");
        // The turn ends after its last event is stored.
        expect((await tab.loadChat()).status).toBe("ready");
      },
      { timeout: 30_000, interval: 100 },
    );
    await tab.approve("pay_soon");
    await tab.waitForPosts(2);
    expect(tab.recorder.posts[1]).toMatchObject({ status: 409, errorCode: "superseded" });
    await tab.expectEnd({
      calls: [["pay_soon", "approval-responded"]],
      status: "error",
      stored: false,
      resumes: false,
    });
    // The stored approval shows why it ended.
    const fresh = await tab.reload(0);
    const [card] = fresh.chat.messages.flatMap(calls);
    expect(card?.part).toMatchObject({
      state: "output-denied",
      approval: { approved: false, reason: "This approval expired." },
    });
  },
);

story("a new message instead of a decision", { posts: 2 }, async (tab) => {
  tab.send("story:new_text");
  await tab.expectPending("pay");
  const id = tab.pending[0]?.approval?.id ?? missing();
  const [, before] = tab.chat.messages;
  tab.send("story:after");
  await tab.waitForPosts(2);
  const closed = tab.data.filter(({ type }) => type === "data-approval").map(({ data }) => data);
  expect(closed).toEqual([
    expect.objectContaining({ approvalId: id, messageId: before?.id, state: "superseded" }),
  ]);
  // A stock client keeps the approval open, but its decision sends nothing.
  await tab.chat.addToolApprovalResponse({ id, approved: true });
  await tab.expectEnd({ messages: 2, calls: [["pay", "approval-responded"]] });
  const reloaded = await tab.reload(0);
  const card = reloaded.chat.messages[1]?.parts.find((part) => part.approval !== undefined);
  expect(card).toMatchObject({ state: "output-denied", approval: { id, approved: false } });
});

story("a decision on a superseded approval", { posts: 2 }, async (tab) => {
  tab.send("story:new_text");
  await tab.waitForApprovals("pay");
  const { messages } = await tab.loadChat();
  tab.send("story:after");
  await tab.waitForPosts(2);
  const late = tab.openTab({ posts: 1, messages });
  await late.approve("pay");
  await expectRefusal(late, 409, "superseded");
  await tab.expectEnd({ messages: 2, calls: [["pay", "approval-requested"]] });
});

story("a decision after a reload", { posts: 1 }, async (tab) => {
  tab.send("story:reload");
  await tab.expectPending("pay");
  const reloaded = await tab.reload(1);
  await reloaded.expectPending("pay");
  await reloaded.approve("pay");
  await reloaded.expectEnd({
    ...SETTLED,
    texts: ["I prepare the payment. ", "The payment is settled."],
  });
  expect(tab.recorder.posts.length).toBe(1);
});

story("two decisions after a reload", { posts: 1 }, async (tab) => {
  tab.send("story:two_in_one_step");
  await tab.expectPending("search", "update");
  const reloaded = await tab.reload(together(2)(tab.combination.rule) - 1);
  await reloaded.approve("search", "update");
  await reloaded.expectEnd({
    calls: [
      ["search", "output-available"],
      ["update", "output-available"],
    ],
    effects: { search: 1, update: 1 },
  });
});

async function paidAmounts(tab: StoryTab): Promise<unknown[]> {
  return (await effectsOf(tab.server, tab.chatId)).map(({ args }) => args.amount);
}

story(
  "an approval with edited arguments",
  { posts: 2, combinations: EACH_TRANSPORT },
  async (tab) => {
    tab.send("story:approval");
    await tab.approveWith("pay", { edit: { amount: 7 } });
    await tab.expectEnd({
      calls: [["pay", "output-available"]],
      texts: ["The payment is settled."],
      effects: { pay: 1 },
    });
    expect(await paidAmounts(tab)).toEqual([7]);
  },
);

story(
  "an approval with edited arguments and another one, in one request",
  { posts: 2, combinations: EACH_TRANSPORT },
  async (tab) => {
    tab.send("story:two_in_one_step");
    await tab.approveWith("search", { edit: { query: "changed" } });
    await tab.approve("update");
    await tab.expectEnd({
      calls: [
        ["search", "output-available"],
        ["update", "output-available"],
      ],
      effects: { search: 1, update: 1 },
    });
    const [post] = tab.recorder.posts.slice(1);
    const body = (post?.body?.body ?? post?.body) as { edits?: object };
    expect(Object.values(body.edits ?? {})).toEqual([{ query: "changed" }]);
  },
);

story(
  "an approval for the rest of the chat",
  { posts: 2, combinations: EACH_TRANSPORT },
  async (tab) => {
    tab.send("story:five_in_sequence");
    await tab.approveWith("pay", { remember: "chat" });
    await tab.expectEnd({
      calls: Array.from({ length: 5 }, () => ["pay", "output-available"] as const),
      texts: ["All five are settled."],
      effects: { pay: 5 },
    });
    expect(await paidAmounts(tab)).toEqual([1, 2, 3, 4, 5]);
  },
);

function missing(): never {
  throw new Error("the message has no pending approval");
}
