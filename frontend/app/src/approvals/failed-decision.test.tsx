import { screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { payment } from "../../testing/payment-request.ts";
import { renderPage } from "../../testing/render.tsx";
import { ApprovalCard } from "./approval-card.tsx";
import type { Decision } from "./decision.ts";

const button = (name: string) => screen.getByRole("button", { name });
const amount = () => screen.getByRole("textbox", { name: "amount" });

test.each([
  ["changed", () => userEvent.type(amount(), "0")],
  ["closed", () => userEvent.click(button("Cancel"))],
])("an approval that was not sent is not sent again after its form was %s", async (_, change) => {
  const decide = vi.fn<(approvalId: string, decision: Decision) => void>();
  const { rerender } = renderPage(<ApprovalCard request={payment()} onDecide={decide} />);
  await userEvent.click(button("Edit"));
  await userEvent.type(amount(), "1");
  await userEvent.click(button("Approve with changes"));
  const decision = decide.mock.calls[0]?.[1] as Decision;
  const request = payment({ progress: { state: "failed", decision, message: "No network." } });
  rerender(<ApprovalCard request={request} onDecide={decide} />);
  expect(button("Retry")).toBeTruthy();
  await change();
  expect(screen.getByText("Your approval was not sent")).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Retry" })).toBeNull();
});
