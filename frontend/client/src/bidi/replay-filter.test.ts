import { describe, expect, test } from "vitest";
import { STORIES } from "../../testing/interrupted-stories.ts";
import type { Chunk } from "./parts-to-chunks.ts";
import { ReceivedMessage } from "./received-message.ts";
import { ReplayFilter } from "./replay-filter.ts";

/** Without data, step ends and preliminary outputs, which do not belong to the final message. */
function persistent(chunks: readonly Chunk[]): Chunk[] {
  return chunks.filter(
    ({ type, preliminary }) => !/^(data-|finish-step$)/.test(type) && preliminary !== true,
  );
}

/** The chunks that pass the filter for a client that has received the first chunks. */
function filtered(chunks: readonly Chunk[], after: number): Chunk[] {
  const received = new ReceivedMessage();
  for (const chunk of chunks.slice(0, after)) received.apply(chunk);
  const replay = new ReplayFilter(received);
  return chunks.flatMap((chunk) => replay.filter(chunk));
}

const RESPONSES = STORIES.map(({ title, turns }) => ({ title, chunks: turns[0] ?? [] }));

describe("a replayed response", () => {
  test.each(RESPONSES.filter(({ title }) => !title.includes("reset")))(
    "continues where it was interrupted, without duplicates: $title",
    ({ chunks }) => {
      for (let after = 0; after <= chunks.length; after += 1) {
        const ended = chunks.slice(after);
        // A last chunk that was received before is sent again; it changes nothing.
        const last = ended.length === 0 ? chunks.slice(-1) : ended;
        expect(persistent(filtered(chunks, after)), `interrupted after ${after}`).toEqual(
          persistent(last),
        );
      }
    },
  );

  test.each(RESPONSES.filter(({ title }) => title.includes("reset for a call")))(
    "does not repeat a reset: $title",
    ({ chunks }) => {
      const reset = chunks.findIndex(({ type }) => type === "reset-step");
      // From here on the client has received the reasoning that follows the reset.
      const reasoningEnd = chunks.findIndex(
        ({ type }, at) => at > reset && type === "reasoning-end",
      );
      for (let after = reasoningEnd + 2; after <= chunks.length; after += 1) {
        const types = filtered(chunks, after).map(({ type }) => type);
        expect(types, `interrupted after ${after}`).not.toContain("reset-step");
      }
    },
  );
});

describe("an input that callbacks have changed", () => {
  const call = { toolCallId: "c1", toolName: "pay" };
  const changed = JSON.parse('{"to":"Eve","__proto__":{"n":1}}');
  const chunks: Chunk[] = [
    { type: "start", messageId: "m1" },
    { type: "start-step" },
    { type: "tool-input-start", ...call },
    { type: "tool-input-available", ...call, input: { to: "Ann" } },
    { type: "tool-input-available", ...call, input: changed },
    { type: "tool-approval-request", approvalId: "a1", toolCallId: "c1" },
  ];

  test.each([3, 4, 5])("arrives before its approval request, after %i chunks", (after) => {
    expect(filtered(chunks, after)).toEqual(chunks.slice(after));
  });

  test("arrives with the stored message, which has the changed input alone", () => {
    const received = new ReceivedMessage();
    for (const chunk of chunks.slice(0, 4)) received.apply(chunk);
    const approval = { id: "a1" };
    const part = { type: "tool-pay", toolCallId: "c1", state: "approval-requested" };
    const stored = [{ type: "step-start" }, { ...part, input: changed, approval }];
    const needed = new ReplayFilter(received).complete(stored, 7) ?? [];
    expect(needed.map(({ type }) => type)).toEqual([
      "tool-input-available",
      "tool-approval-request",
    ]);
    expect(JSON.stringify(needed[0]?.input)).toBe(JSON.stringify(changed));
  });
});
