import { expect, test } from "vitest";
import {
  assertFinalResponse,
  assertIntermediateResponse,
  type ResponseChunk,
  S2Violation,
} from "./sequential-response-assertions.ts";

function chunks(...types: string[]): ResponseChunk[] {
  return types.map((type) => ({ type }));
}

const REQUEST = ["start", "start-step", "tool-input-start", "tool-input-available"];
const ASKED = [...REQUEST, "tool-approval-request", "finish-step"];
const RELEASED = ["start", "start-step", "text-start", "text-delta", "text-end"];

function requirementOf(assertion: () => void): string | undefined {
  try {
    assertion();
  } catch (error) {
    if (error instanceof S2Violation) return error.requirement;
    throw error;
  }
  return undefined;
}

test.each([
  { types: [...ASKED, "finish"], violated: undefined },
  { types: ["data-progress", "reasoning-delta", ...ASKED, "finish"], violated: undefined },
  { types: ["tool-approval-request", ...REQUEST, "finish"], violated: "S2-R03" },
  { types: ["text-start", ...ASKED, "finish"], violated: "S2-R04" },
  { types: [...REQUEST, "finish"], violated: "S2-R05" },
  { types: ["tool-output-available", ...ASKED, "finish"], violated: "S2-R06" },
  { types: [...ASKED, "tool-output-denied", "finish"], violated: "S2-R06" },
  { types: ["file", ...ASKED, "finish"], violated: "S2-R48" },
  { types: ["source-url", ...ASKED, "finish"], violated: "S2-R48" },
  { types: ASKED, violated: "S2-R25" },
  { types: [...ASKED, "finish", "finish"], violated: "S2-R25" },
])("an intermediate response of $types violates $violated", ({ types, violated }) => {
  expect(requirementOf(() => assertIntermediateResponse(chunks(...types)))).toBe(violated);
});

test.each([
  { types: [...RELEASED, "tool-output-available", "tool-output-error", "finish"] },
  { types: [...RELEASED, "finish"], violated: "S2-R07" },
  { types: ["tool-output-available", ...RELEASED, "finish"], violated: "S2-R07" },
  { types: [...RELEASED, "tool-output-available", ...ASKED, "finish"], violated: "S2-R20" },
  { types: [...RELEASED, "tool-output-available"], violated: "S2-R25" },
])("a final response of $types violates $violated", ({ types, violated }) => {
  expect(requirementOf(() => assertFinalResponse(chunks(...types)))).toBe(violated);
});
