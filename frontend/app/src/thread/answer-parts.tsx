import { Box } from "@mantine/core";
import type { UIMessage } from "ai";
import type { ReactNode } from "react";
import { ApprovalGroup } from "../approvals/approval-group.tsx";
import type { ApprovalRequest } from "../approvals/request.ts";
import { CLIENT_TOOLS } from "../chat/client-tools.ts";
import { type Around, useAround } from "../chat/context.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { Plain } from "../markdown/plain.tsx";
import { Folded } from "../shown/folded.tsx";
import { FilePart } from "./file-part.tsx";
import { PageQuestion } from "./page-question.tsx";
import { type Source, Sources } from "./sources.tsx";
import { ToolCall } from "./tool-call.tsx";
import { editsOf, isToolPart, type ToolPart, toolName } from "./tool-states.ts";

type Part = UIMessage["parts"][number];

function isQuestion(part: ToolPart, { isBusy }: Around): boolean {
  const isOpen = part.state === "input-available" && part.providerExecuted !== true;
  return isOpen && !isBusy && part.approval === undefined && !(toolName(part) in CLIENT_TOOLS);
}

function Reasoning({ text }: { readonly text: string }) {
  if (text.trim() === "") return null;
  return (
    <Folded label="Thoughts">
      <Box fz="sm">
        <Plain text={text} />
      </Box>
    </Folded>
  );
}

interface ToolProps {
  readonly part: ToolPart;
  readonly requests: readonly ApprovalRequest[];
  /** What the message tells of its approvals. */
  readonly metadata: unknown;
}

/** A call: its question stands with those that are asked together, where the first of them is. */
function Tool({ part, requests, metadata }: ToolProps) {
  const around = useAround();
  const place = requests.findIndex(({ approvalId }) => approvalId === part.approval?.id);
  if (place === 0) return <ApprovalGroup requests={requests} onDecide={around.decide} />;
  if (place > 0) return null;
  if (isQuestion(part, around)) return <PageQuestion part={part} />;
  return <ToolCall part={part} edits={editsOf(part, metadata)} />;
}

function draw(part: Part, requests: readonly ApprovalRequest[], metadata: unknown): ReactNode {
  switch (part.type) {
    case "text":
      return <Markdown text={part.text} isGrowing={part.state === "streaming"} />;
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

/** All of an answer, in its order; what it rests on stands at its end. */
export function AnswerParts({ message }: { readonly message: UIMessage }) {
  const { requests } = useAround();
  const own = requests.filter(({ messageId }) => messageId === message.id);
  return (
    <>
      {message.parts.map((part, index) => {
        // A tool part is itself wherever others come to stand; any other is its place.
        const key = isToolPart(part) ? part.toolCallId : index;
        const drawn = draw(part, own, message.metadata);
        return drawn === false || drawn === undefined ? null : <Slot key={key}>{drawn}</Slot>;
      })}
      <Sources sources={message.parts.filter(isSource)} />
    </>
  );
}

function Slot({ children }: { readonly children: ReactNode }) {
  return children;
}
