import { describe, expect, test } from "vitest";
import {
  expected,
  KINDS,
  locate,
  lookup,
  MARKED,
  message,
  NO,
  pay,
  RULES,
  YES,
} from "../testing/kinds.ts";
import type { ChatMessage, MessagePart } from "./messages.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";

const STEP: MessagePart = { type: "step-start" };

describe.each(RULES)("the rule $name", ({ names, at }) => {
  const rule = () => sendAutomaticallyWhen(names);

  describe.each(KINDS)("with $kind", ({ part, last, earlier }) => {
    test("alone in the last step", () => {
      expect(rule()(message(STEP, part))).toBe(expected(last[at]));
    });

    test("alone and without steps", () => {
      expect(rule()(message(part))).toBe(expected(last[at]));
    });

    test("in a step before an empty one", () => {
      expect(rule()(message(STEP, part, STEP))).toBe(expected(earlier[at]));
    });

    test("in one step with each other kind", () => {
      for (const other of KINDS) {
        const wanted = expected(last[at], other.last[at]);
        expect(rule()(message(STEP, part, other.part)), other.kind).toBe(wanted);
        expect(rule()(message(STEP, other.part, part)), other.kind).toBe(wanted);
      }
    });

    test("in a step before each other kind", () => {
      for (const other of KINDS) {
        const wanted = expected(earlier[at], other.last[at]);
        expect(rule()(message(STEP, part, STEP, other.part)), other.kind).toBe(wanted);
      }
    });

    test("never twice as it is, and again once it is forgotten", () => {
      const made = rule();
      const first = made(message(STEP, part));
      expect(made(message(STEP, part))).toBe(false);
      made.forget("another");
      expect(made(message(STEP, part))).toBe(false);
      made.forget("m1");
      expect(made(message(STEP, part))).toBe(first);
      made.forget();
      expect(made(message(STEP, part))).toBe(first);
    });

    test("never behind a message of the user", () => {
      const { messages } = message(STEP, part);
      const user: ChatMessage = { id: "u2", role: "user", parts: [] };
      expect(rule()({ messages: [...messages, user] })).toBe(false);
    });
  });

  test("sends nothing without messages", () => {
    expect(rule()({ messages: [] })).toBe(false);
  });

  test("sends an answer, yet no output, before a text that was cut off", () => {
    const cut: MessagePart = { type: "text", state: "streaming" };
    const answered = pay("approval-responded", { approval: YES });
    expect(rule()(message(STEP, locate("output-available"), cut))).toBe(false);
    expect(
      rule()(message(STEP, locate("output-available"), cut, lookup("output-available", MARKED))),
    ).toBe(false);
    expect(rule()(message(STEP, cut, locate("output-available")))).toBe(true);
    expect(rule()(message(STEP, answered, cut))).toBe(true);
  });

  test("sends what is new beside what was sent, and nothing when some of it is settled", () => {
    const made = rule();
    const one = pay("approval-responded", { approval: YES });
    expect(made(message(STEP, one))).toBe(true);
    expect(made(message(STEP, one, one))).toBe(true);
    expect(made(message(STEP, pay("output-available", { approval: YES }), one))).toBe(false);
  });

  test("takes yes after no for another answer", () => {
    const made = rule();
    expect(made(message(STEP, pay("approval-responded", { approval: NO })))).toBe(true);
    expect(made(message(STEP, pay("approval-responded", { approval: YES })))).toBe(true);
  });

  test("shares no memory with another rule, and keeps messages apart", () => {
    const state = message(STEP, pay("approval-responded", { approval: YES }));
    const made = rule();
    expect([made(state), rule()(state), made(state)]).toEqual([true, true, false]);
    const other = state.messages.map((each) => ({ ...each, id: `${each.id}-other` }));
    expect(made({ messages: other })).toBe(true);
  });

  test("sends an output of an earlier step that it saw open there", () => {
    const made = rule();
    expect(made(message(STEP, locate("input-available")))).toBe(false);
    expect(made(message(STEP, locate("output-available"), STEP))).toBe(true);
  });
});
