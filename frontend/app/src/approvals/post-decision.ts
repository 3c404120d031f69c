import { API_URL, refusalOf } from "../api.ts";
import type { Decision, DecisionTrace } from "./decision.ts";

/** Milliseconds after which a decision without a response has failed. */
const SEND_TIMEOUT = 20_000;

/** The body of `POST /approvals/{id}`. */
function decisionBody(decision: Decision): object {
  if (!decision.approved) {
    const { reason, response } = decision;
    return {
      approved: false,
      ...(reason !== undefined && { reason }),
      ...(response !== undefined && { response }),
    };
  }
  const { digest, edit, payload, remember } = decision;
  return {
    approved: true,
    ...(edit !== undefined && { edits: edit }),
    ...(payload !== undefined && { payload }),
    ...(remember !== undefined && { remember }),
    ...(digest !== undefined && { digest }),
  };
}

/**
 * Send a decision; undefined if the request waits for further people. It rejects with a
 * `TimeoutError` if there is no response in time. The server may have the decision then; it accepts
 * the same one again.
 */
export async function postDecision(
  send: typeof fetch,
  approvalId: string,
  decision: Decision,
): Promise<DecisionTrace | undefined> {
  const attempt = new AbortController();
  const timer = setTimeout(
    () => attempt.abort(new DOMException("No response.", "TimeoutError")),
    SEND_TIMEOUT,
  );
  try {
    return await requestDecision(send, approvalId, decision, attempt.signal);
  } finally {
    clearTimeout(timer);
  }
}

async function requestDecision(
  send: typeof fetch,
  approvalId: string,
  decision: Decision,
  signal: AbortSignal,
): Promise<DecisionTrace | undefined> {
  const response = await send(`${API_URL}/approvals/${encodeURIComponent(approvalId)}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(decisionBody(decision)),
    signal,
  });
  if (!response.ok) throw await refusalOf(response);
  const recorded = (await response.json()) as Record<string, unknown>;
  // The request waits for other people, too.
  if (recorded.state === "requested" && recorded.approvers !== undefined) return undefined;
  const { decidedBy, decidedAt } = recorded;
  return {
    ...(typeof decidedBy === "string" && { decidedBy }),
    ...(typeof decidedAt === "string" && { decidedAt: Date.parse(decidedAt) }),
  };
}
