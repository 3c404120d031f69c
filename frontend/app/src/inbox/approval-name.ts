import { callSummary } from "../approvals/call-summary.ts";
import { parseDescriptor } from "../approvals/descriptor.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import type { Approval } from "./approval.ts";
import { cardRequest } from "./card-request.ts";

/** The title of the tool and the main arguments of a call, on one line. */
export function approvalName(approval: Approval): string {
  const { input, descriptor, title, toolName } = cardRequest(approval);
  const summary = callSummary(approval.edits ?? input, parseDescriptor(descriptor).defaults);
  const name = visibleName(title ?? toolName);
  return summary === "" ? name : `${name}: ${summary}`;
}
