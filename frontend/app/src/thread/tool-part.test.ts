import { expect, test } from "vitest";
import { type ToolPart, toolInput, toolName, toolPayload } from "./tool-part.ts";

test.each([
  [{ type: "tool-pay", approval: { id: "a1", descriptor: { payload: { days: 0 } } } }, { days: 0 }],
  [{ type: "tool-adk_request_confirmation", input: { toolConfirmation: { payload: [1] } } }, [1]],
  [{ type: "tool-adk_request_confirmation", input: { toolConfirmation: {} } }, undefined],
  [{ type: "tool-pay", approval: { id: "a1", descriptor: { payload: null } } }, undefined],
  [{ type: "tool-pay" }, undefined],
])("the answer that %j asks for", (part, payload) => {
  expect(toolPayload({ toolCallId: "c1", state: "output-available", ...part })).toEqual(payload);
});

test("a confirmation part has the name and input of its call", () => {
  const part: ToolPart = {
    type: "tool-adk_request_confirmation",
    toolCallId: "ap1",
    state: "output-available",
    input: { originalFunctionCall: { id: "c1", name: "pay", args: { amount: 5 } } },
  };
  expect([toolName(part), toolInput(part)]).toEqual(["pay", { amount: 5 }]);
});
