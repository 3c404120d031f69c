import { describe, expect, test } from "vitest";
import { difference, type Origin } from "./equality.ts";
import type { Message, Part } from "./messages.ts";

const LIVE: Origin = { major: 7, resumed: false };

function message(...parts: Part[]): Message {
  return { id: "m1", role: "assistant", parts };
}

function pay(more: object): Part {
  return { type: "tool-pay", toolCallId: "c1", input: { amount: 1 }, ...more };
}

const YES = { id: "a1", approved: true };
const DONE = { state: "output-available", output: { ok: true } };

describe("what does not make a difference", () => {
  const rows: [string, Part[], Part[], Origin?][] = [
    ["steps", [{ type: "step-start" }, pay(DONE)], [pay(DONE)]],
    ["data parts", [{ type: "data-note", data: 1 }, pay(DONE)], [pay(DONE)]],
    ["undefined keys", [pay({ ...DONE, errorText: undefined })], [pay(DONE)]],
    ["raw input", [pay({ ...DONE, rawInput: "{" })], [pay(DONE)]],
    ["provider metadata", [pay({ ...DONE, callProviderMetadata: { a: {} } })], [pay(DONE)]],
    [
      "the state of a text",
      [{ type: "text", text: "a", state: "streaming" }],
      [{ type: "text", text: "a", state: "done" }],
    ],
    [
      "the id of reasoning",
      [{ type: "reasoning", text: "a", id: "r1" }],
      [{ type: "reasoning", text: "a" }],
    ],
    [
      "a request's descriptor",
      [pay({ ...DONE, approval: { ...YES, descriptor: {}, requestReason: "r" } })],
      [pay({ ...DONE, approval: YES })],
    ],
    [
      "a decided approval, where a 6 client resumes",
      [pay({ ...DONE, approval: YES })],
      [pay(DONE)],
      { major: 6, resumed: true },
    ],
    [
      "a decided and held call, where a 6 client resumes",
      [pay({ state: "approval-responded", approval: YES })],
      [pay({ state: "input-available" })],
      { major: 6, resumed: true },
    ],
  ];
  test.each(rows)("%s", (_, one, other, origin = LIVE) => {
    expect(difference(message(...one), message(...other), origin)).toBeUndefined();
  });

  test("a part that the caller leaves out", () => {
    const between = (part: Part): boolean => part.type === "tool-locate_gated";
    const one = message({ type: "tool-locate_gated", state: "input-available" });
    expect(difference(one, message(), LIVE, between)).toBeUndefined();
  });
});

describe("what makes a difference", () => {
  const rows: [string, Part[], Part[], Origin?][] = [
    ["a missing part", [pay(DONE)], []],
    [
      "the order",
      [pay(DONE), { type: "text", text: "a" }],
      [{ type: "text", text: "a" }, pay(DONE)],
    ],
    ["a text", [{ type: "text", text: "a" }], [{ type: "text", text: "b" }]],
    ["a state", [pay(DONE)], [pay({ state: "input-available" })]],
    ["an output", [pay(DONE)], [pay({ ...DONE, output: { ok: false } })]],
    ["the side that runs a call", [pay({ ...DONE, providerExecuted: true })], [pay(DONE)]],
    ["a decision", [pay({ ...DONE, approval: YES })], [pay({ ...DONE, approval: { id: "a1" } })]],
    ["a decision, for a 7 client", [pay({ ...DONE, approval: YES })], [pay(DONE)]],
    [
      "a decision, for a 6 client that has not resumed",
      [pay({ ...DONE, approval: YES })],
      [pay(DONE)],
      { major: 6, resumed: false },
    ],
    [
      "a request that waits, also where a 6 client resumes",
      [pay({ state: "approval-requested", approval: { id: "a1" } })],
      [pay({ state: "approval-requested", approval: { id: "a2" } })],
      { major: 6, resumed: true },
    ],
  ];
  test.each(rows)("%s", (_, one, other, origin = LIVE) => {
    expect(difference(message(...one), message(...other), origin)).toBeDefined();
  });

  test("the message's id", () => {
    expect(difference(message(), { ...message(), id: "m2" }, LIVE)).toContain("ids");
  });

  test("a message that is not there", () => {
    expect(difference(message(), undefined, LIVE)).toContain("ids");
  });
});
