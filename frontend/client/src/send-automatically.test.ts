import { describe, expect, test } from "vitest";
import {
  APPROVED,
  DENIED,
  expected,
  KINDS,
  locate,
  lookup,
  message,
  pay,
  RULES,
  SERVER_SIDE,
} from "../testing/send-rule-cases.ts";
import type { ChatMessage, MessagePart } from "./message-parts.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";

const STEP: MessagePart = { type: "step-start" };

describe.each(RULES)("the rule $name", ({ options, column }) => {
  const rule = () => sendAutomaticallyWhen(options);

  describe.each(KINDS)("with $kind", ({ part, last, earlier }) => {
    test("alone in the last step", () => {
      expect(rule()(message(STEP, part))).toBe(expected(last[column]));
    });

    test("alone without steps", () => {
      expect(rule()(message(part))).toBe(expected(last[column]));
    });

    test("in a step before an empty one", () => {
      expect(rule()(message(STEP, part, STEP))).toBe(expected(earlier[column]));
    });

    test("in one step with each other kind", () => {
      for (const other of KINDS) {
        const expectation = expected(last[column], other.last[column]);
        expect(rule()(message(STEP, part, other.part)), other.kind).toBe(expectation);
        expect(rule()(message(STEP, other.part, part)), other.kind).toBe(expectation);
      }
    });

    test("in a step before each other kind", () => {
      for (const other of KINDS) {
        const expectation = expected(earlier[column], other.last[column]);
        expect(rule()(message(STEP, part, STEP, other.part)), other.kind).toBe(expectation);
      }
    });

    test("once for the same message, and again after forget", () => {
      const created = rule();
      const first = created(message(STEP, part));
      expect(created(message(STEP, part))).toBe(false);
      created.forget("another");
      expect(created(message(STEP, part))).toBe(false);
      created.forget("m1");
      expect(created(message(STEP, part))).toBe(first);
      created.forget();
      expect(created(message(STEP, part))).toBe(first);
    });

    test("never after a user message", () => {
      const { messages } = message(STEP, part);
      const user: ChatMessage = { id: "u2", role: "user", parts: [] };
      expect(rule()({ messages: [...messages, user] })).toBe(false);
    });
  });

  test("sends nothing without messages", () => {
    expect(rule()({ messages: [] })).toBe(false);
  });

  test("sends a decision but no output before unfinished text", () => {
    const cut: MessagePart = { type: "text", state: "streaming" };
    const answered = pay("approval-responded", { approval: APPROVED });
    expect(rule()(message(STEP, locate("output-available"), cut))).toBe(false);
    expect(
      rule()(
        message(STEP, locate("output-available"), cut, lookup("output-available", SERVER_SIDE)),
      ),
    ).toBe(false);
    expect(rule()(message(STEP, cut, locate("output-available")))).toBe(true);
    expect(rule()(message(STEP, answered, cut))).toBe(true);
  });

  test("sends a new decision, and nothing when an earlier one is settled", () => {
    const created = rule();
    const one = pay("approval-responded", { approval: APPROVED });
    expect(created(message(STEP, one))).toBe(true);
    expect(created(message(STEP, one, one))).toBe(true);
    expect(created(message(STEP, pay("output-available", { approval: APPROVED }), one))).toBe(
      false,
    );
  });

  test("treats an approval after a denial as a new decision", () => {
    const created = rule();
    expect(created(message(STEP, pay("approval-responded", { approval: DENIED })))).toBe(true);
    expect(created(message(STEP, pay("approval-responded", { approval: APPROVED })))).toBe(true);
  });

  test("has a separate memory per rule and per message", () => {
    const state = message(STEP, pay("approval-responded", { approval: APPROVED }));
    const created = rule();
    expect([created(state), rule()(state), created(state)]).toEqual([true, true, false]);
    const other = state.messages.map((each) => ({ ...each, id: `${each.id}-other` }));
    expect(created({ messages: other })).toBe(true);
  });

  test("takes no confirmation that is announced again for a client-side call", () => {
    const created = rule();
    const confirmation = (state: string) => ({
      type: "tool-adk_request_confirmation",
      toolCallId: "ap1",
      state,
      approval: APPROVED,
    });
    expect(created(message(STEP, confirmation("approval-responded")))).toBe(true);
    expect(created(message(STEP, confirmation("input-available")))).toBe(false);
    expect(created(message(STEP, confirmation("output-available")))).toBe(false);
    const another = pay("approval-responded", { approval: { id: "ap2", approved: true } });
    expect(created(message(STEP, confirmation("input-available"), another))).toBe(true);
  });

  test("sends an output of an earlier step if the call was open before", () => {
    const created = rule();
    expect(created(message(STEP, locate("input-available")))).toBe(false);
    expect(created(message(STEP, locate("output-available"), STEP))).toBe(true);
  });
});
