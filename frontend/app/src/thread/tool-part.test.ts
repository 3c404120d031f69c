import { expect, test } from "vitest";
import { type ToolPart, toolInput, toolName } from "./tool-part.ts";

test("a confirmation part has the name and input of its call", () => {
  const part: ToolPart = {
    type: "tool-adk_request_confirmation",
    toolCallId: "ap1",
    state: "output-available",
    input: { originalFunctionCall: { id: "c1", name: "pay", args: { amount: 5 } } },
  };
  expect([toolName(part), toolInput(part)]).toEqual(["pay", { amount: 5 }]);
});
