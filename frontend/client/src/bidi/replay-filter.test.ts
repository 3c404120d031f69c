import { describe, expect, test } from "vitest";
import { STORIES } from "../../testing/interrupted-stories.ts";
import { type Chunk, ReceivedMessage } from "./received-message.ts";
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
