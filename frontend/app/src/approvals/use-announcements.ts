import type { UIMessage } from "ai";
import { useEffect, useRef, useState } from "react";
import type { ToolProgress } from "../chat/tool-progress.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import {
  approvalTrace,
  isToolPart,
  type ToolPart,
  toolInput,
  toolTitle,
} from "../thread/tool-part.ts";
import { toolState } from "../thread/tool-state.ts";
import { type ApprovalRequest, isOpen } from "./approval-requests.ts";
import { callSummary } from "./call-summary.ts";
import { failureWords } from "./decision.ts";
import { parseDescriptor } from "./descriptor.ts";

function named(title: string, summary: string): string {
  return summary === "" ? title : `${title} (${summary})`;
}

function requestState({ progress }: ApprovalRequest): string | undefined {
  switch (progress?.state) {
    case undefined:
      return undefined;
    case "sending":
      return progress.decision.approved
        ? "your approval is being sent"
        : "your denial is being sent";
    case "failed":
      return `${failureWords(progress)}. ${progress.message}`;
    case "accepted":
      return progress.decision.approved ? "approved" : "denied";
  }
}

function requestName(request: ApprovalRequest): string {
  const { defaults } = parseDescriptor(request.descriptor);
  const title = visibleName(request.title ?? request.toolName);
  return named(title, callSummary(request.input, defaults));
}

/** The sentence about the open requests. */
function openRequests(requests: readonly ApprovalRequest[]): string[] {
  const names = requests.map(requestName).join("; ");
  return [
    requests.length === 1
      ? `Approval needed: ${names}.`
      : `${requests.length} approvals needed: ${names}.`,
  ];
}

/** The states of the gated calls of a message, by tool call id. */
function callStates(
  message: UIMessage | undefined,
  requests: readonly ApprovalRequest[],
  progress: ToolProgress,
): Map<string, string> {
  const states = new Map<string, string>();
  for (const part of (message?.parts ?? []) as readonly { readonly type: string }[]) {
    const call = part as ToolPart;
    if (!isToolPart(call) || call.approval === undefined) continue;
    if (call.state === "approval-requested") continue;
    const trace = approvalTrace(call, message?.metadata);
    const hasPending = requests.length > 0;
    const { label } = toolState(call, { progress, hasPending, recorded: trace?.state });
    const name = named(visibleName(toolTitle(call)), callSummary(trace?.edits ?? toolInput(call)));
    states.set(call.toolCallId, `${name}: ${label}.`);
  }
  for (const request of requests) {
    const state = requestState(request);
    if (state !== undefined) states.set(request.toolCallId, `${requestName(request)}: ${state}.`);
  }
  return states;
}

/**
 * The text for screen readers after each change: new requests, and every state of a gated call with
 * its tool, its main arguments and its outcome.
 */
export function useAnnouncements(
  messages: readonly UIMessage[],
  requests: readonly ApprovalRequest[],
  progress: ToolProgress,
): string {
  const [text, setText] = useState("");
  const known = useRef<ReadonlyMap<string, string>>(undefined);
  const asked = useRef(new Set<string>());
  useEffect(() => {
    const states = callStates(messages.at(-1), requests, progress);
    const before = known.current;
    known.current = states;
    // Calls that were settled before the page was opened are not news.
    const changed = [...states].filter(([id, state]) => before && before.get(id) !== state);
    const open = requests.filter((request) => isOpen(request));
    const hasNew = open.some(({ approvalId }) => !asked.current.has(approvalId));
    for (const { approvalId } of open) asked.current.add(approvalId);
    // Requests that come one after the other replace the text before it was read out.
    const asks = hasNew ? openRequests(open) : [];
    const sentences = [...changed.map(([, sentence]) => sentence), ...asks];
    if (sentences.length > 0) setText(sentences.join(" "));
  }, [messages, requests, progress]);
  return text;
}
