import { Check, CircleHelp, X } from "lucide-react";
import { memo, type ReactNode } from "react";
import { ArgumentTable } from "../approvals/argument-table.tsx";
import { callSummary } from "../approvals/call-summary.ts";
import type { DecisionProgress } from "../approvals/decision.ts";
import { useChatContext } from "../chat/chat-context.ts";
import { Badge } from "../components/badge.tsx";
import { Disclosure } from "../components/disclosure.tsx";
import { FieldTable } from "../components/field-table.tsx";
import { JsonValue } from "../components/json-value.tsx";
import { Spinner } from "../components/spinner.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { isRecord } from "../is-record.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { DecidedApproval } from "./decided-approval.tsx";
import {
  type ApprovalTrace,
  type ToolPart,
  toolInput,
  toolPayload,
  toolTitle,
} from "./tool-part.ts";
import { type ToolState, toolState, withAcceptedDecision } from "./tool-state.ts";

const TONES = { open: "neutral", done: "neutral", problem: "danger", unknown: "warning" } as const;

function StateIcon({ state }: { readonly state: ToolState }) {
  switch (state.kind) {
    case "open":
      return <Spinner />;
    case "done":
      return <Check size={12} />;
    case "problem":
      return <X size={12} />;
    case "unknown":
      return <CircleHelp size={12} />;
  }
}

interface CallProps {
  readonly part: ToolPart;
  /** What the server recorded of the approval. */
  readonly trace: ApprovalTrace | undefined;
}

interface SectionProps {
  readonly title: string;
  readonly children: ReactNode;
}

function Section({ title, children }: SectionProps) {
  return (
    <div className="stack gap-1">
      <p className="text-sm strong">{title}</p>
      {children}
    </div>
  );
}

function Details({ part, trace }: CallProps) {
  const input = toolInput(part);
  const edits = trace?.edits;
  const answer = trace?.editedPayload;
  const askedAnswer = part.approval?.approved ? toolPayload(part) : undefined;
  return (
    <div className="stack">
      {edits !== undefined && (
        <Section title="Arguments, changed before the approval">
          <ArgumentTable value={edits} label="Arguments" />
        </Section>
      )}
      {input !== undefined && (
        <Section title={edits === undefined ? "Arguments" : "What the agent asked for"}>
          <ArgumentTable value={input} label={edits === undefined ? "Arguments" : "Asked for"} />
        </Section>
      )}
      {answer !== undefined && (
        <Section title="Answer, changed before the approval">
          <ArgumentTable value={answer} label="Answer" />
        </Section>
      )}
      {askedAnswer !== undefined && (
        <Section title={answer === undefined ? "Answer" : "What the tool asked for"}>
          <ArgumentTable
            value={askedAnswer}
            label={answer === undefined ? "Answer" : "Answer asked for"}
          />
        </Section>
      )}
      {part.state === "output-available" && (
        <Section title="Result">
          {isRecord(part.output) ? (
            <FieldTable value={part.output} label="Result" />
          ) : (
            <JsonValue value={part.output} />
          )}
        </Section>
      )}
    </div>
  );
}

/** The trace, which a streamed message has only after a reload, with what the page knows itself. */
function withOwnTrace(
  trace: ApprovalTrace | undefined,
  progress: DecisionProgress | undefined,
): ApprovalTrace | undefined {
  if (progress?.state !== "accepted") return trace;
  const { decision } = progress;
  const { edit, payload } = decision.approved ? decision : {};
  return {
    ...progress.trace,
    ...(edit !== undefined && { edits: edit }),
    ...(payload !== undefined && { editedPayload: payload }),
    ...trace,
  };
}

/** A tool call on one line, with expandable details. */
export const ToolCall = memo(function ToolCall({ part: received, trace: recorded }: CallProps) {
  const { callNumbers, decisions, toolProgress, requests } = useChatContext();
  const part = withAcceptedDecision(received, decisions);
  const trace = withOwnTrace(recorded, part.approval && decisions.get(part.approval.id));
  const hasPending = requests.length > 0;
  const state = toolState(part, { progress: toolProgress, hasPending, recorded: trace?.state });
  const name = toolTitle(part);
  const summary = callSummary(trace?.edits ?? toolInput(part));
  // Rows of the same tool have different accessible names.
  const number = callNumbers.get(part.toolCallId) ?? 1;
  const label = `Tool: ${visibleName(name)}${number > 1 ? `, call ${number}` : ""}`;
  return (
    <section
      className="tool-call stack gap-1"
      tabIndex={-1}
      aria-label={label}
      data-tool-call-id={part.toolCallId}
    >
      <div className="row between">
        <p className="text-sm">
          <span className="strong">
            <VisibleText text={name} />
          </span>
          {summary !== "" && (
            <span className="dim">
              {" "}
              <bdi className="literal">{summary}</bdi>
            </span>
          )}
        </p>
        <Badge tone={TONES[state.kind]} icon={<StateIcon state={state} />}>
          {state.label}
        </Badge>
      </div>
      <DecidedApproval part={part} trace={trace} />
      {part.errorText !== undefined && (
        <p className={`text-sm ${state.kind === "problem" ? "danger" : ""}`}>
          <VisibleText text={part.errorText} />
        </p>
      )}
      <Disclosure label="Details">
        <Details part={part} trace={trace} />
      </Disclosure>
    </section>
  );
});
