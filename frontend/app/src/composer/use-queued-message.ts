import { useEffect, useState } from "react";

/** A message waits for the chat, or was kept since the answer before it has failed. */
type QueueState = "empty" | "queued" | "kept";

interface QueueOptions {
  /** Whether the chat takes no message now. */
  readonly isBusy: boolean;
  /** What a message would withdraw: the ids of the approvals and calls that wait for the person. */
  readonly open: readonly string[];
  /** The error that the page shows. */
  readonly problem: string | undefined;
  readonly send: () => void;
}

/**
 * A message that is sent once the chat is idle. It withdraws nothing that came after it was queued:
 * then it waits until that is decided too. After a new error it is kept instead.
 */
export function useQueuedMessage({ isBusy, open, problem, send }: QueueOptions) {
  const [state, setState] = useState<QueueState>("empty");
  const [known, setKnown] = useState<Pick<QueueOptions, "open" | "problem">>();
  const isNewProblem = problem !== undefined && problem !== known?.problem;
  const isBlocked = isBusy || open.some((id) => known?.open.includes(id) !== true);
  useEffect(() => {
    if (state !== "queued" || (isBlocked && !isNewProblem)) return;
    setState(isNewProblem ? "kept" : "empty");
    if (!isNewProblem) send();
  }, [state, isBlocked, isNewProblem, send]);
  return {
    state,
    queue: () => {
      setKnown({ open, problem });
      setState("queued");
    },
    cancel: () => setState("empty"),
  };
}
