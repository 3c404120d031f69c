import { describe, expect, test } from "vitest";
import { STORIES } from "../../testing/cut-stories.ts";
import { CatchUp } from "./catch-up.ts";
import { type Chunk, Pieces } from "./pieces.ts";

/** Without what says how a message was told or how far a call had come, and not what it holds. */
function lasting(chunks: readonly Chunk[]): Chunk[] {
  return chunks.filter(
    ({ type, preliminary }) => !/^(data-|finish-step$)/.test(type) && preliminary !== true,
  );
}

/** What a client that holds the first chunks is passed of the same response told again. */
function rest(chunks: readonly Chunk[], after: number): Chunk[] {
  const have = new Pieces();
  for (const chunk of chunks.slice(0, after)) have.apply(chunk);
  const catchUp = new CatchUp(have);
  return chunks.flatMap((chunk) => catchUp.take(chunk));
}

const RESPONSES = STORIES.map(({ title, turns }) => ({ title, chunks: turns[0] ?? [] }));

describe("what is told again", () => {
  test.each(RESPONSES.filter(({ title }) => !title.includes("taken back")))(
    "is passed on from where it was cut, and nothing twice: $title",
    ({ chunks }) => {
      for (let after = 0; after <= chunks.length; after += 1) {
        const ended = chunks.slice(after);
        // An end that had come is told again; it changes nothing.
        const last = ended.length === 0 ? chunks.slice(-1) : ended;
        expect(lasting(rest(chunks, after)), `cut after ${after}`).toEqual(lasting(last));
      }
    },
  );

  test.each(RESPONSES.filter(({ title }) => title.includes("taken back for a call")))(
    "takes nothing back that has been taken back: $title",
    ({ chunks }) => {
      const reset = chunks.findIndex(({ type }) => type === "reset-step");
      // By then the client holds what the second telling of the thought has brought.
      const isTold = chunks.findIndex(({ type }, at) => at > reset && type === "reasoning-end");
      for (let after = isTold + 2; after <= chunks.length; after += 1) {
        const types = rest(chunks, after).map(({ type }) => type);
        expect(types, `cut after ${after}`).not.toContain("reset-step");
      }
    },
  );
});
