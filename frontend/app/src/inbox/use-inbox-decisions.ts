import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { RequestRefused } from "sluicegate";
import type { ApprovalRequest } from "../approvals/approval-requests.ts";
import type {
  Decide,
  Decision,
  DecisionProgress,
  DecisionsInProgress,
  DecisionTrace,
} from "../approvals/decision.ts";
import { postDecision } from "../approvals/post-decision.ts";
import { errorMessage } from "../error-message.ts";
import { APPROVALS_KEY } from "../sync/approvals-key.ts";
import type { Approval } from "./approval.ts";
import { cardRequest } from "./card-request.ts";

/** Decisions that are sent at once: each has a turn go on, of which a user may have five. */
const MAX_SENDING = 3;
/** Milliseconds between two attempts while the server is busy, and how often they are made. */
const BUSY_DELAY = 2_000;
const MAX_ATTEMPTS = 30;

/** A function that runs work, of which only so much runs at a time; the rest waits in its order. */
function useLimited(limit: number) {
  const running = useRef(0);
  const waiting = useRef<(() => void)[]>([]);
  return useCallback(
    async <Result>(work: () => Promise<Result>): Promise<Result> => {
      if (running.current < limit) running.current += 1;
      else await new Promise<void>((resolve) => waiting.current.push(resolve));
      try {
        return await work();
      } finally {
        const next = waiting.current.shift();
        if (next === undefined) running.current -= 1;
        else next();
      }
    },
    [limit],
  );
}

/**
 * Send a decision; again while the server runs as many turns as it may: it counts once. Undefined if
 * the request waits for further people.
 */
async function sendDecision(
  approvalId: string,
  decision: Decision,
): Promise<DecisionTrace | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await postDecision(globalThis.fetch, approvalId, decision);
    } catch (error) {
      const isBusy = error instanceof RequestRefused && [429, 503].includes(error.status);
      if (!isBusy || attempt === MAX_ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, BUSY_DELAY));
    }
  }
}

/** The decisions of this page, each of one approval; what they change is loaded again. */
export function useInboxDecisions() {
  const client = useQueryClient();
  const limited = useLimited(MAX_SENDING);
  const [decisions, setDecisions] = useState<DecisionsInProgress>(new Map());
  const decide: Decide = useCallback(
    async (approvalId, decision) => {
      const set = (progress: DecisionProgress) =>
        setDecisions((before) => new Map(before).set(approvalId, progress));
      set({ state: "sending", decision });
      try {
        const trace = await limited(() => sendDecision(approvalId, decision));
        if (trace === undefined) {
          setDecisions((before) => new Map([...before].filter(([id]) => id !== approvalId)));
        } else {
          set({ state: "accepted", decision, trace });
        }
      } catch (error) {
        const isUnconfirmed = !(error instanceof RequestRefused);
        const hint = isUnconfirmed ? " The same decision counts once." : "";
        const isOutdated = error instanceof RequestRefused && error.code === "changed";
        const message = `${errorMessage(error)}${hint}`;
        set({ state: "failed", decision, message, isUnconfirmed, isOutdated });
      }
      await client.invalidateQueries({ queryKey: APPROVALS_KEY });
    },
    [client, limited],
  );
  return { decisions, decide };
}

/** The approval as the request of a card, with the decision of this page. */
export function requestWith(approval: Approval, decisions: DecisionsInProgress): ApprovalRequest {
  const progress = decisions.get(approval.approvalId);
  return { ...cardRequest(approval), ...(progress !== undefined && { progress }) };
}
