import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { button, card, renderGroup } from "../../testing/approval-cards.tsx";
import { payment } from "../../testing/requests.ts";
import { payloadSchema } from "./payload-form.tsx";

const PAYLOAD = { approved_days: 0, note: "Ask" };

test("a card shows the answer that the tool gets", async () => {
  const { decide, user } = renderGroup(payment({ payload: PAYLOAD }));
  expect(card().textContent).toContain("With your approval the tool gets this answer:");
  const rows = screen.getAllByRole("row").map((row) => row.textContent);
  expect(rows.slice(-2)).toEqual(["approved_days0", "noteAsk"]);
  await user.click(button("Approve"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true }]]);
});

test("an edited answer is approved in its shape", async () => {
  const { decide, user } = renderGroup(payment({ payload: PAYLOAD }));
  await user.click(button("Edit the answer"));
  const days = screen.getByLabelText<HTMLInputElement>("approved_days");
  await user.clear(days);
  await user.type(days, "3");
  await user.click(button("Approve with changes"));
  const payload = { approved_days: 3, note: "Ask" };
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, payload }]]);
});

test("an answer that is one text is edited as a field", async () => {
  const { decide, user } = renderGroup(payment({ payload: "Yes" }));
  await user.click(button("Edit the answer"));
  await user.type(screen.getByLabelText("answer"), ", please");
  await user.click(button("Approve with changes"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, payload: "Yes, please" }]]);
});

test("a tool that asks without a payload has no answer to edit", () => {
  renderGroup(payment());
  expect(screen.queryByRole("button", { name: "Edit the answer" })).toBeNull();
});

test.each([
  [{ n: 1 }, { type: "object", properties: { n: { type: "number" } }, required: ["n"] }],
  [[true, false], { type: "array", items: { type: "boolean" } }],
  [[true, "x"], { type: "array", items: {} }],
  [[], { type: "array", items: {} }],
  [null, {}],
])("the schema of %j has its shape", (payload, schema) => {
  expect(payloadSchema(payload)).toEqual(schema);
});
