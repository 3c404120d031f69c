import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { button, card, renderGroup } from "../../testing/approval-cards.tsx";
import { payment } from "../../testing/payment-request.ts";
import { payloadSchema } from "./approve-edited-form.tsx";

const PAYLOAD = { approved_days: 0, note: "Ask" };

test("a card shows the answer that the tool gets", async () => {
  const { decide, user } = renderGroup(payment({ payload: PAYLOAD }));
  expect(card().textContent).toContain("With your approval the tool gets this answer:");
  const rows = screen.getAllByRole("row").map((row) => row.textContent);
  expect(rows.slice(-2)).toEqual(["approved_days0", "noteAsk"]);
  await user.click(button("Approve"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true }]]);
});

const ANSWER_ONLY = { toolName: "process_payment", editable: false };

test("an edited answer is approved in its shape", async () => {
  const { decide, user } = renderGroup(payment({ payload: PAYLOAD }));
  await user.click(button("Edit"));
  const days = screen.getByLabelText<HTMLInputElement>("approved_days");
  await user.clear(days);
  await user.type(days, "3");
  await user.click(button("Approve with changes"));
  const payload = { approved_days: 3, note: "Ask" };
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, payload }]]);
});

test("the arguments and the answer are edited in one decision", async () => {
  const { decide, user } = renderGroup(payment({ payload: PAYLOAD }));
  await user.click(button("Edit"));
  expect(screen.queryByRole("table")).toBeNull();
  const amount = within(screen.getByRole("group", { name: "Edit the arguments" }));
  await user.type(amount.getByRole("textbox", { name: "amount" }), "0");
  const answer = within(screen.getByRole("group", { name: "Edit the answer" }));
  await user.type(answer.getByLabelText("note"), " Ada");
  await user.click(button("Approve with changes"));
  const edit = { recipient: "Ada", amount: 500 };
  const payload = { approved_days: 0, note: "Ask Ada" };
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, edit, payload }]]);
});

test("an argument and a member of the answer with the same name are separate fields", async () => {
  const { decide, user } = renderGroup(payment({ payload: { amount: 1 } }));
  await user.click(button("Edit"));
  const [argument, member] = screen.getAllByRole("textbox", { name: "amount" });
  await user.type(argument as HTMLElement, "x");
  await user.type(member as HTMLElement, "2");
  await user.click(button("Approve with changes"));
  expect(decide).not.toHaveBeenCalled();
  expect(argument?.getAttribute("aria-invalid")).toBe("true");
  expect(member?.getAttribute("aria-invalid")).not.toBe("true");
});

test("an answer of a tool whose arguments cannot be edited is edited alone", async () => {
  const request = payment({ payload: "Yes", descriptor: ANSWER_ONLY });
  const { decide, user } = renderGroup(request);
  expect(screen.queryByRole("button", { name: "Edit" })).toBeNull();
  await user.click(button("Edit the answer"));
  expect(screen.getByRole("table", { name: "Arguments" }).textContent).toContain("Ada");
  await user.type(screen.getByLabelText("answer"), ", please");
  await user.click(button("Approve with changes"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, payload: "Yes, please" }]]);
});

const FORM = {
  type: "object",
  properties: {
    seat: { type: "string", title: "Seat" },
    cabin: { type: "string", enum: ["front", "back"] },
    meals: { type: "integer", default: 1 },
  },
  required: ["seat"],
};

test("a form is filled in by its schema, and a field that is cleared has no value", async () => {
  const payload = { seat: null, cabin: null, meals: 1 };
  const request = payment({ payload, payloadSchema: FORM, descriptor: ANSWER_ONLY });
  const { decide, user } = renderGroup(request);
  await user.click(button("Fill in the form"));
  await user.type(screen.getByRole("textbox", { name: "seat" }), "A1");
  await user.click(screen.getByRole("button", { name: "Leave out: meals" }));
  await user.click(button("Approve with changes"));
  const answer = { seat: "A1", cabin: null, meals: null };
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, payload: answer }]]);
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
