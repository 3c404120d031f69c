import { screen, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, onTestFinished, test, vi } from "vitest";
import { button, card, isDisabled, renderGroup } from "../../testing/approval-cards.tsx";
import { payment } from "../../testing/payment-request.ts";
import { renderPage } from "../../testing/render.tsx";
import { ApprovalGroup } from "./approval-group.tsx";

const box = (name: RegExp) => screen.getByRole<HTMLInputElement>("checkbox", { name });

test("later calls are approved only with the same values, unless the person widens it", async () => {
  const { decide, user } = renderGroup(payment({ agent: "shop/billing" }));
  await user.click(button("Do not ask again…"));
  expect(document.activeElement).toBe(screen.getByRole("radio", { name: /same values/ }));
  expect(box(/recipient/).checked && box(/amount/).checked).toBe(true);
  expect(card().textContent).toContain(
    "For 24 hours, shop/billing can call process_payment with the same recipient and amount in this chat",
  );
  await user.click(box(/amount/));
  expect(card().textContent).toContain("with the same recipient in this chat");
  await user.selectOptions(screen.getByRole("combobox", { name: "Ask again after" }), "1 hour");
  await user.click(button("Continue"));
  await user.click(button("Approve and do not ask again"));
  const remember = { where: ["recipient"], ttl: 3600 };
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, remember }]]);
});

test.each([
  ["24 hours", "chat"],
  ["10 minutes", { ttl: 600 }],
])("later calls of the tool are approved with any values for %s", async (duration, remember) => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Do not ask again…"));
  await user.click(screen.getByRole("radio", { name: /^This tool with any values/ }));
  expect(screen.queryByRole("checkbox")).toBeNull();
  await user.selectOptions(screen.getByRole("combobox", { name: "Ask again after" }), duration);
  expect(card().textContent).toContain(`For ${duration}, `);
  await user.click(button("Continue"));
  await user.click(button("Approve and do not ask again"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, remember }]]);
});

test("the duration is limited by the server", async () => {
  const descriptor = { rememberable: true, grantTtl: 3600 };
  const { user } = renderGroup(payment({ descriptor }));
  await user.click(button("Do not ask again…"));
  expect(screen.getAllByRole("option").map(({ textContent }) => textContent)).toEqual([
    "10 minutes",
    "1 hour",
  ]);
});

test("at least one value must be the same", async () => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Do not ask again…"));
  await user.click(box(/recipient/));
  await user.click(box(/amount/));
  expect(isDisabled("Continue")).toBe(true);
  await user.click(button("Continue"));
  expect(screen.queryByRole("button", { name: "Approve and do not ask again" })).toBeNull();
  expect(card().textContent).toContain("Choose at least one argument.");
  await user.keyboard("{Escape}");
  expect(document.activeElement).toBe(card());
  expect(decide).not.toHaveBeenCalled();
});

test("a call without arguments can only be allowed for the tool", async () => {
  const { decide, user } = renderGroup(payment({ input: {} }));
  await user.click(button("Do not ask again…"));
  expect(screen.queryByRole("radio", { name: /same values/ })).toBeNull();
  await user.click(button("Continue"));
  await user.click(button("Approve and do not ask again"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, remember: "chat" }]]);
});

test("the second step says what is allowed, and takes the focus from the first", async () => {
  // 24 hours later is another day, whose date is shown, except on a day of 25 hours.
  vi.setSystemTime(new Date(2026, 0, 15, 12));
  onTestFinished(() => void vi.useRealTimers());
  const { decide, user } = renderGroup(payment({ agent: "shop/billing" }));
  await user.click(button("Do not ask again…"));
  await user.click(box(/amount/));
  button("Continue").focus();
  await user.keyboard("{Enter}{Enter}");
  expect(decide).not.toHaveBeenCalled();
  const rows = within(screen.getByRole("table", { name: "What you allow" })).getAllByRole("row");
  expect(rows.map(({ textContent }) => textContent)).toEqual([
    "Toolprocess_payment",
    "Called byshop/billing",
    "Withthe same recipient: Adaany amount and currency",
    "Wherethis chat",
    expect.stringMatching(/^Until\d+ \w+ \d{4}, \d\d:\d\d \(24 hours\)$/),
  ]);
  await user.click(button("Back"));
  expect(box(/amount/).checked).toBe(false);
});

test("a double click never makes a grant", async () => {
  const decide = vi.fn();
  renderPage(<ApprovalGroup requests={[payment()]} onDecide={decide} />, 60_000);
  const user = userEvent.setup();
  await user.dblClick(button("Do not ask again…"));
  await user.dblClick(button("Continue"));
  await user.dblClick(button("Approve and do not ask again"));
  expect(isDisabled("Approve and do not ask again")).toBe(true);
  expect(decide).not.toHaveBeenCalled();
});
