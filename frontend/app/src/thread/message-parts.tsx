import type { UIMessage } from "ai";
import type { ReactNode } from "react";
import { ApprovalGroup } from "../approvals/approval-group.tsx";
import type { ApprovalRequest } from "../approvals/approval-requests.ts";
import { type ChatContextValue, useChatContext } from "../chat/chat-context.ts";
import { Disclosure } from "../components/disclosure.tsx";
import { LazyMarkdown } from "../markdown/lazy-markdown.tsx";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { FilePart } from "./file-part.tsx";
import { InputRequest } from "./input-request.tsx";
import { Reasoning } from "./reasoning.tsx";
import { type Source, Sources } from "./sources.tsx";
import { ToolCall } from "./tool-call.tsx";
import { groupToolCalls } from "./tool-call-groups.ts";
import { approvalTrace, isAdkRequest, isToolPart, type ToolPart, toolTitle } from "./tool-part.ts";

type Part = UIMessage["parts"][number];

function isInputRequest(part: ToolPart, { isBusy, isReadOnly }: ChatContextValue): boolean {
  const canAnswer = !isBusy && isReadOnly !== true;
  // Other calls without an outcome are the server's, or those of a client that can run them.
  return part.state === "input-available" && canAnswer && isAdkRequest(part);
}

interface ToolProps {
  readonly part: ToolPart;
  readonly requests: readonly ApprovalRequest[];
  /** The metadata of the message, with its decided approvals. */
  readonly metadata: unknown;
}

/** A tool call; the requests of a message are grouped at the position of the first one. */
function Tool({ part, requests, metadata }: ToolProps) {
  const context = useChatContext();
  const requestIndex = requests.findIndex(({ approvalId }) => approvalId === part.approval?.id);
  if (requestIndex === 0) {
    const { decide, isSpoken } = context;
    return <ApprovalGroup requests={requests} onDecide={decide} isSpoken={isSpoken} />;
  }
  if (requestIndex > 0) return null;
  if (isInputRequest(part, context)) return <InputRequest part={part} />;
  return <ToolCall part={part} trace={approvalTrace(part, metadata)} />;
}

function renderPart(
  part: Part,
  requests: readonly ApprovalRequest[],
  metadata: unknown,
): ReactNode {
  switch (part.type) {
    case "text":
      return <LazyMarkdown text={part.text} isStreaming={part.state === "streaming"} />;
    case "reasoning":
      return <Reasoning text={part.text} isStreaming={part.state === "streaming"} />;
    case "file":
      return <FilePart part={part} />;
    default:
      return (
        isToolPart(part) && <Tool part={part as ToolPart} requests={requests} metadata={metadata} />
      );
  }
}

function isSource(part: Part): part is Source {
  return part.type === "source-url" || part.type === "source-document";
}

/** The open forms of a group are kept when its first request is decided elsewhere. */
function partKey(part: Part, index: number, [first]: readonly ApprovalRequest[]) {
  if (!isToolPart(part)) return index;
  const { approval } = part as ToolPart;
  return first !== undefined && approval?.id === first.approvalId ? "approvals" : part.toolCallId;
}

interface MessagePartsProps {
  readonly message: UIMessage;
  /** The open approval requests of the message. */
  readonly requests: readonly ApprovalRequest[];
}

/** The number of calls and the names of their tools. */
function runLabel(calls: readonly ToolPart[]): string {
  const names = [...new Set(calls.map((call) => visibleName(toolTitle(call))))];
  return `${calls.length} tool calls: ${names.join(", ")}`;
}

/** Calls in a row on one line, with each of them inside. */
function ToolCallGroup({ calls }: { readonly calls: readonly ToolPart[] }) {
  return (
    <Disclosure label={runLabel(calls)}>
      <div className="stack">
        {calls.map((call) => (
          <ToolCall key={call.toolCallId} part={call} trace={undefined} />
        ))}
      </div>
    </Disclosure>
  );
}

/** The parts of an answer in order, followed by its sources. */
export function MessageParts({ message, requests }: MessagePartsProps) {
  return (
    <>
      {groupToolCalls(message.parts).map((entry) => {
        if (entry.kind === "group") {
          return <ToolCallGroup key={entry.calls[0]?.toolCallId} calls={entry.calls} />;
        }
        const { part, index } = entry;
        // A tool part keeps its identity when parts are inserted; others have their position.
        const key = partKey(part, index, requests);
        const rendered = renderPart(part, requests, message.metadata);
        return rendered === false || rendered === undefined ? null : (
          <Slot key={key}>{rendered}</Slot>
        );
      })}
      <Sources sources={message.parts.filter(isSource)} />
    </>
  );
}

function Slot({ children }: { readonly children: ReactNode }) {
  return children;
}
