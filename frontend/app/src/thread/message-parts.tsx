import { Box } from "@mantine/core";
import type { UIMessage } from "ai";
import type { ReactNode } from "react";
import { ApprovalGroup } from "../approvals/approval-group.tsx";
import type { ApprovalRequest } from "../approvals/approval-requests.ts";
import { type ChatContextValue, useChatContext } from "../chat/chat-context.ts";
import { CLIENT_TOOLS } from "../chat/client-tools.ts";
import { Disclosure } from "../components/disclosure.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { PlainText } from "../markdown/plain-text.tsx";
import { FilePart } from "./file-part.tsx";
import { InputRequest } from "./input-request.tsx";
import { type Source, Sources } from "./sources.tsx";
import { ToolCall } from "./tool-call.tsx";
import { editsOf, isToolPart, type ToolPart, toolName } from "./tool-states.ts";

type Part = UIMessage["parts"][number];

function isInputRequest(part: ToolPart, { isBusy }: ChatContextValue): boolean {
  const isOpen = part.state === "input-available" && part.providerExecuted !== true;
  const isAutomatic = Object.hasOwn(CLIENT_TOOLS, toolName(part));
  return isOpen && !isBusy && part.approval === undefined && !isAutomatic;
}

function Reasoning({ text }: { readonly text: string }) {
  if (text.trim() === "") return null;
  return (
    <Disclosure label="Thoughts">
      <Box fz="sm">
        <PlainText text={text} />
      </Box>
    </Disclosure>
  );
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
  if (requestIndex === 0) return <ApprovalGroup requests={requests} onDecide={context.decide} />;
  if (requestIndex > 0) return null;
  if (isInputRequest(part, context)) return <InputRequest part={part} />;
  return <ToolCall part={part} edits={editsOf(part, metadata)} />;
}

function renderPart(
  part: Part,
  requests: readonly ApprovalRequest[],
  metadata: unknown,
): ReactNode {
  switch (part.type) {
    case "text":
      return <Markdown text={part.text} isStreaming={part.state === "streaming"} />;
    case "reasoning":
      return <Reasoning text={part.text} />;
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

/** The parts of an answer in order, followed by its sources. */
export function MessageParts({ message }: { readonly message: UIMessage }) {
  const { requests } = useChatContext();
  const messageRequests = requests.filter(({ messageId }) => messageId === message.id);
  return (
    <>
      {message.parts.map((part, index) => {
        // A tool part keeps its identity when parts are inserted; others have their position.
        const key = isToolPart(part) ? part.toolCallId : index;
        const rendered = renderPart(part, messageRequests, message.metadata);
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
