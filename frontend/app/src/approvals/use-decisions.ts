import type { UIMessage } from "ai";
import { type RefObject, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { RequestRefused } from "sluicegate";
import type { SluiceChat } from "sluicegate/react";
import { errorMessage } from "../error-message.ts";
import { isToolPart, type ToolPart } from "../thread/tool-part.ts";
import type { Decide, DecisionProgress, DecisionsInProgress } from "./decision.ts";
import { postDecision } from "./post-decision.ts";

/** Milliseconds between two polls of a busy chat; the delay between reloads doubles from here. */
const FIRST_DELAY = 250;
const MAX_DELAY = 4_000;
/** The number of reloads after which the page asks the server to continue the turn. */
const MAX_RELOADS = 4;

type Parts = readonly { readonly type: string }[];

function toolParts(messages: readonly UIMessage[]): readonly ToolPart[] {
  return ((messages.at(-1)?.parts ?? []) as Parts).filter(isToolPart);
}

/** Whether every request of the last message is decided and a call has no outcome yet. */
function isToContinue(messages: readonly UIMessage[]): boolean {
  const parts = toolParts(messages).filter(
    ({ approval }) => approval !== undefined && approval.isAutomatic !== true,
  );
  const isOpen = parts.some(({ state }) => state === "approval-requested");
  const isDecided = parts.some(
    ({ state, approval }) => state === "approval-responded" && approval !== undefined,
  );
  return isDecided && !isOpen;
}

/** Resolves when the chat receives no response. */
async function whenIdle(chat: RefObject<SluiceChat<UIMessage>>): Promise<void> {
  while (isBusy(chat.current)) await new Promise((resolve) => setTimeout(resolve, FIRST_DELAY));
}

function isBusy({ isReconnecting, status }: SluiceChat<UIMessage>): boolean {
  return status === "submitted" || status === "streaming" || isReconnecting;
}

interface DecisionsOptions {
  readonly chat: RefObject<SluiceChat<UIMessage>>;
  /** Replaces the browser's own. */
  readonly fetch: typeof fetch | undefined;
  /** Called with the sentence of a refusal that closes the card, such as one decided elsewhere. */
  readonly onRefused: (message: string) => void;
  /** Called when the server has accepted a decision. */
  readonly onAccepted: () => void;
}

/**
 * The decisions of this page. Each is final when the server has accepted it; the turn continues
 * after the last one, and the page resumes its stream; meanwhile it is continuing.
 */
export function useDecisions(options: DecisionsOptions) {
  const { chat } = options;
  const [decisions, setDecisions] = useState<DecisionsInProgress>(new Map());
  const [isContinuing, setContinuing] = useState(false);
  const latest = useRef(options);
  useEffect(() => {
    latest.current = options;
  });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const sending = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);

  /** Reload the chat until its turn has continued; after `MAX_RELOADS`, request that it does. */
  const follow = useCallback(
    async (reloads = 1): Promise<void> => {
      clearTimeout(timer.current);
      setContinuing(true);
      await whenIdle(chat);
      const stored = await chat.current.reload().catch(() => undefined);
      const isSettled =
        stored !== undefined && (stored.status !== "ready" || !isToContinue(stored.messages));
      const isLost = stored !== undefined && reloads >= MAX_RELOADS;
      if (isSettled || isLost) setContinuing(false);
      if (isSettled) return;
      // A server that was killed does not continue by itself; nothing runs twice by this.
      if (isLost) return void (await chat.current.sendMessage());
      const delay = Math.min(FIRST_DELAY * 2 ** reloads, MAX_DELAY);
      timer.current = setTimeout(() => void follow(reloads + 1), delay);
    },
    [chat],
  );
  useEffect(() => {
    // The page was opened after the last decision of a turn that does not run.
    if (isToContinue(chat.current.messages)) void follow();
  }, [chat, follow]);

  const decide: Decide = useCallback(
    async (approvalId, decision) => {
      const set = (progress: DecisionProgress) =>
        setDecisions((before) => new Map(before).set(approvalId, progress));
      set({ state: "sending", decision });
      sending.current += 1;
      try {
        const send = latest.current.fetch ?? globalThis.fetch;
        const trace = await postDecision(send, approvalId, decision);
        latest.current.onAccepted();
        if (trace === undefined) {
          setDecisions((before) => new Map([...before].filter(([id]) => id !== approvalId)));
          return;
        }
        set({ state: "accepted", decision, trace });
      } catch (error) {
        // Without a response, the server may have the decision.
        const isUnconfirmed = !(error instanceof RequestRefused);
        const hint = isUnconfirmed ? " The same decision counts once." : "";
        const message = `${errorMessage(error)}${hint}`;
        const isOutdated = error instanceof RequestRefused && error.code === "changed";
        set({ state: "failed", decision, message, isUnconfirmed, isOutdated });
        // The card stays, with the call as it is now.
        if (isOutdated) latest.current.onAccepted();
        if (isOutdated) return;
        const isClosed = error instanceof RequestRefused && [404, 409].includes(error.status);
        if (isClosed) latest.current.onRefused(message);
        else return;
      } finally {
        sending.current -= 1;
      }
      // Of decisions that are sent at once, the last one reloads for the turn.
      if (sending.current === 0) await follow();
    },
    [follow],
  );
  return useMemo(() => ({ decisions, isContinuing, decide }), [decisions, isContinuing, decide]);
}
