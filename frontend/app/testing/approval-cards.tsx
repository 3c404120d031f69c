import { screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { vi } from "vitest";
import { ApprovalGroup } from "../src/approvals/approval-group.tsx";
import type { ApprovalRequest } from "../src/approvals/approval-requests.ts";
import { renderPage } from "./render.tsx";

/** Render the cards of requests, with a spy for their decisions. */
export function renderGroup(...requests: ApprovalRequest[]) {
  const decide = vi.fn();
  renderPage(<ApprovalGroup requests={requests} onDecide={decide} />);
  return { decide, user: userEvent.setup() };
}

export const card = (name = "Send money") =>
  screen.getByRole("region", { name: `Approval: ${name}` });

export const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });

export const isDisabled = (name: string) => button(name).getAttribute("aria-disabled") === "true";
