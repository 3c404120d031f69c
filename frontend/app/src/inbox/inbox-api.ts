import { API_URL, request } from "../api.ts";
import type { Approval } from "./approval.ts";

export interface ApprovalPage {
  readonly approvals: readonly Approval[];
  readonly next: string | null;
}

/** A selection of approvals; an empty text selects all. */
export interface Filter {
  readonly tool: string;
  readonly agent: string;
  /** Seconds since the request. */
  readonly olderThan: string;
}

export const NO_FILTER: Filter = { tool: "", agent: "", olderThan: "" };

/** A line of the audit trail. */
export interface HistoryEntry {
  readonly id: number;
  readonly at: string;
  readonly requester: string;
  readonly chatId: string;
  readonly tool: string;
  readonly action: string;
  readonly approvalId?: string;
  readonly by?: string;
  readonly via?: string;
  readonly reason?: string;
}

export interface HistoryPage {
  readonly entries: readonly HistoryEntry[];
  readonly next: string | null;
}

export interface Verification {
  readonly state: "intact" | "broken";
  readonly checkedAt: string;
  readonly detail?: string;
}

export type Resolution = "executed" | "failed" | "run-again";

/** A URL query of the parameters that have a value. */
function query(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value);
  return new URLSearchParams(given as [string, string][]).toString();
}

const approvalPath = (id: string) => `/approvals/${encodeURIComponent(id)}`;

export async function listApprovals(
  state: "waiting" | "unknown",
  filter: Filter,
  after?: string,
): Promise<ApprovalPage> {
  return (await request(`/approvals?${query({ state, ...filter, after })}`)).json();
}

export async function loadApproval(id: string): Promise<Approval> {
  return (await request(approvalPath(id))).json();
}

export async function resolveOutcome(
  id: string,
  outcome: Resolution,
  reason: string,
): Promise<Approval> {
  const response = await request(`${approvalPath(id)}/resolution`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ outcome, reason }),
  });
  return response.json();
}

export async function loadHistory(text: string, after?: string): Promise<HistoryPage> {
  return (await request(`/history?${query({ q: text, after })}`)).json();
}

export async function verifyHistory(): Promise<Verification> {
  return (await request("/history/verification")).json();
}

/** The URL of the whole history as a file. */
export function exportUrl(format: "csv" | "json", text: string): string {
  return `${API_URL}/history/export.${format}?${query({ q: text })}`;
}
