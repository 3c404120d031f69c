import { screen, waitFor, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { button, card, isDisabled, renderGroup } from "../../testing/approval-cards.tsx";
import { payment } from "../../testing/payment-request.ts";
import type { ChangingApproval } from "./use-approval-from-server.ts";

const RULE = { users: ["bob"], roles: ["finance"], quorum: 2 };
const OPEN: ChangingApproval = { decisions: [], missing: 2, mayDecide: true, digest: "d1" };

/** A request that other people decide; the server knows `shared` of it. */
function sharedPayment(shared: Partial<ChangingApproval> = {}, descriptor: object = {}) {
  const answer = () => Promise.resolve(Response.json({ ...OPEN, ...shared }));
  vi.spyOn(globalThis, "fetch").mockImplementation(answer);
  const request = payment();
  return payment({
    descriptor: { ...(request.descriptor as object), approvers: RULE, ...descriptor },
  });
}

afterEach(() => vi.restoreAllMocks());

test("a card shows who may approve, who has, and how many people are missing", async () => {
  const decisions = [
    { by: "bob", approved: true, reason: "fine", voided: true },
    { by: "cat", approved: true, edited: true },
  ];
  renderGroup(sharedPayment({ decisions, missing: 1 }));
  const list = await screen.findByRole("list", { name: "Decisions" });
  expect(card().textContent).toContain("finance or bob may approve. 1 approval is missing.");
  const items = within(list).getAllByRole("listitem");
  expect(items.map((item) => item.textContent)).toEqual([
    "bob approved what was changed since, which no longer counts: “fine”",
    "cat changed the call and approved",
  ]);
});

test("the buttons of a person who may not decide are off, with the reason", async () => {
  const { decide, user } = renderGroup(sharedPayment({ mayDecide: false }));
  await screen.findByText("This call waits for finance or bob.");
  for (const name of ["Approve", "Deny", "Edit"]) {
    expect(isDisabled(name)).toBe(true);
    await user.click(button(name));
  }
  card().focus();
  await user.keyboard("ade");
  expect(decide).not.toHaveBeenCalled();
  expect(screen.queryByRole("textbox")).toBeNull();
});

test("an approval states the digest of what the card shows", async () => {
  const { decide, user } = renderGroup(sharedPayment({ edits: { recipient: "Ada", amount: 5 } }));
  await waitFor(() => expect(isDisabled("Approve")).toBe(false));
  const rows = screen.getAllByRole("row").map((row) => row.textContent);
  expect(rows).toEqual(["recipientAda", "amount5"]);
  await user.click(button("Approve"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, digest: "d1" }]]);
});

test("a person answers in place of the tool by a form of its schema", async () => {
  const schema = {
    type: "object",
    properties: { price: { type: "number" } },
    required: ["price"],
  };
  const { decide, user } = renderGroup(sharedPayment({}, { responseSchema: schema }));
  await waitFor(() => expect(isDisabled("Answer in its place…")).toBe(false));
  await user.click(button("Answer in its place…"));
  await user.type(screen.getByRole("textbox", { name: "price" }), "12.5");
  await user.click(button("Send the answer"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: false, response: { price: 12.5 } }]]);
});
