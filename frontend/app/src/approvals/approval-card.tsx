import "./approval-card.css";
import { type RefObject, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { Alert } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { GuardedButton } from "../components/guarded-button.tsx";
import { moveFocus } from "../components/reflex-guard.ts";
import { TextWarnings } from "../components/text-warnings.tsx";
import { ReadingContext, useReading } from "../components/use-unread-texts.ts";
import { VisibleText } from "../components/visible-text.tsx";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { type ApprovalRequest, responseSchema } from "./approval-requests.ts";
import { ApproveEditedForm } from "./approve-edited-form.tsx";
import { Approvers, blockedReason } from "./approvers.tsx";
import { ArgumentTable } from "./argument-table.tsx";
import { type Decide, type Decision, failureWords } from "./decision.ts";
import { DecisionButtons, type OpenForm } from "./decision-buttons.tsx";
import { DefinitionNotice } from "./definition-notice.tsx";
import { DenyForm } from "./deny-form.tsx";
import { parseDescriptor } from "./descriptor.ts";
import { EditForm } from "./edit-form.tsx";
import { parseApproverRule } from "./parse-approver-rule.ts";
import { Preview } from "./preview.tsx";
import { parsePreview } from "./preview-content.ts";
import { RememberForm } from "./remember-form.tsx";
import { TimeLeft, useIsOver } from "./time-left.tsx";
import type { ToolOrigin } from "./tool-origin.ts";
import { useApprovalFromServer } from "./use-approval-from-server.ts";
import { useCardShortcutHandler, useCardShortcuts } from "./use-card-shortcuts.ts";

/** Milliseconds for which a decided card keeps its height, so that no button moves up to a pointer. */
const HOLD_HEIGHT = 1000;

export function requestName(request: ApprovalRequest): string {
  return visibleName(request.title ?? request.toolName);
}

interface StateProps {
  readonly request: ApprovalRequest;
  readonly isExpired: boolean;
}

/** The state of a request on its card: what the server knows. */
function StateBadge({ request: { descriptor, progress }, isExpired }: StateProps) {
  if (progress?.state === "accepted") {
    return progress.decision.approved ? (
      <Badge tone="success">approved</Badge>
    ) : (
      <Badge tone="danger">denied</Badge>
    );
  }
  if (isExpired) return <Badge>expired</Badge>;
  if (progress?.state === "sending") return <Badge tone="accent">being sent</Badge>;
  if (progress?.state === "failed") return <Badge tone="danger">{failureWords(progress)}</Badge>;
  if (parseApproverRule(descriptor) !== undefined) return <Badge tone="accent">waits</Badge>;
  return <Badge tone="accent">waits for you</Badge>;
}

/** What a worker says of its tool; these are its words and not the server's. */
function Origin({ worker, tool, description, isDestructive }: ToolOrigin) {
  return (
    <>
      <p className="text-sm dim">
        From the worker <VisibleText text={worker} />
        {tool !== undefined && (
          <>
            , which calls it{" "}
            <span className="mono">
              <VisibleText text={tool} />
            </span>
          </>
        )}
        {description !== undefined && (
          <>
            : “<VisibleText text={description} />”
          </>
        )}
      </p>
      {isDestructive && (
        <p>
          <Badge tone="danger">its worker warns: may destroy data</Badge>
        </p>
      )}
      <TextWarnings name="Name at the worker" value={tool} />
      <TextWarnings name="Description" value={description} />
    </>
  );
}

function Heading({ request, isExpired, id }: StateProps & { readonly id: string }) {
  const { expiresAt } = parseDescriptor(request.descriptor);
  const { agent, progress } = request;
  return (
    <div className="stack gap-1">
      <div className="row between">
        <p className="strong text-lg" id={id}>
          <VisibleText text={request.title ?? request.toolName} />
        </p>
        <div className="row">
          {expiresAt !== undefined && progress?.state !== "accepted" && (
            <TimeLeft until={expiresAt} />
          )}
          <StateBadge request={request} isExpired={isExpired} />
        </div>
      </div>
      <p className="text-sm dim">
        {agent === undefined ? "The agent" : <VisibleText text={agent} />} wants to call{" "}
        <span className="mono">
          <VisibleText text={request.toolName} />
        </span>
      </p>
      {request.origin !== undefined && <Origin {...request.origin} />}
      {request.reason !== undefined && (
        <p className="text-sm">
          <VisibleText text={request.reason} />
        </p>
      )}
      <TextWarnings name="Title" value={request.title} />
      <TextWarnings name="Name of the tool" value={request.toolName} />
      <TextWarnings name="Agent" value={agent} />
      <TextWarnings name="Reason" value={request.reason} />
    </div>
  );
}

interface ActionsProps {
  readonly request: ApprovalRequest;
  readonly onDecide: (decision: Decision) => void;
  readonly unread: number;
  readonly blocked: string | undefined;
  /** Why the call can only be denied. */
  readonly unshown: string | undefined;
  readonly form: OpenForm | undefined;
  readonly onForm: (form: OpenForm | undefined) => void;
}

function Actions(props: ActionsProps) {
  const { request, onDecide, unread, blocked, unshown, form, onForm } = props;
  const isSending = request.progress?.state === "sending";
  const onCancel = () => onForm(undefined);
  switch (form) {
    case "edit":
      return (
        <ApproveEditedForm
          request={request}
          isSending={isSending}
          onApprove={(edits) => onDecide({ approved: true, ...edits })}
          onCancel={onCancel}
        />
      );
    case "remember":
      return (
        <RememberForm
          request={request}
          isSending={isSending}
          onApprove={(remember) => onDecide({ approved: true, remember })}
          onCancel={onCancel}
        />
      );
    case "deny":
      return <DenyForm isSending={isSending} onDeny={onDecide} onCancel={onCancel} />;
    case "respond":
      return (
        <EditForm
          sections={[
            {
              label: "Answer in place of the tool",
              schema: responseSchema(request),
              input: {},
              defaults: {},
            },
          ]}
          isSending={isSending}
          submitLabel="Send the answer"
          onApprove={([response = {}]) => onDecide({ approved: false, response })}
          onCancel={onCancel}
        />
      );
    case undefined:
      return (
        <DecisionButtons
          request={request}
          isSending={isSending}
          onApprove={() => onDecide({ approved: true })}
          onForm={onForm}
          unread={unread}
          blocked={blocked}
          unshown={unshown}
        />
      );
  }
}

interface FailureProps {
  readonly request: ApprovalRequest;
  /** Whether the card still shows what was decided. */
  readonly canRetry: boolean;
  readonly onDecide: (decision: Decision) => void;
}

/** The failure of a decision; the same decision can be sent again and counts once. */
function Failure({ request: { progress }, canRetry, onDecide }: FailureProps) {
  if (progress?.state !== "failed") return null;
  const { decision, message, isOutdated } = progress;
  const retry = () => onDecide(decision);
  const title = `Your ${decision.approved ? "approval" : "denial"} was ${failureWords(progress)}`;
  return (
    <Alert
      tone={isOutdated ? "warning" : "danger"}
      isAnnounced
      title={isOutdated ? "The call has changed" : title}
    >
      <p className="text-sm literal">{message}</p>
      {canRetry && (
        <div>
          {decision.approved ? (
            <GuardedButton size="sm" onAccept={retry}>
              Retry
            </GuardedButton>
          ) : (
            <Button size="sm" onClick={retry}>
              Retry
            </Button>
          )}
        </div>
      )}
    </Alert>
  );
}

function useHeldHeight(card: RefObject<HTMLElement | null>, state: string | undefined) {
  const [height, setHeight] = useState<number>();
  useEffect(() => {
    if (state === "sending") return;
    const timer = setTimeout(() => setHeight(undefined), state === "accepted" ? HOLD_HEIGHT : 0);
    return () => clearTimeout(timer);
  }, [state]);
  return [height, () => setHeight(card.current?.offsetHeight)] as const;
}

/** What a group has to know of a card before all of its cards are approved at once. */
export interface CardState {
  /** The number of long values that were not shown in full. */
  readonly unread: number;
  readonly form: OpenForm | undefined;
  /** Why the person cannot decide, or cannot approve. */
  readonly blocked: string | undefined;
  /** The digest of what is shown, where it may change. */
  readonly digest: string | undefined;
}

interface ApprovalCardProps {
  readonly request: ApprovalRequest;
  readonly onDecide: Decide;
  readonly isHidden?: boolean;
  readonly isSpoken?: boolean;
  readonly onState?: (approvalId: string, state: CardState) => void;
}

/**
 * The card of one approval request.
 *
 * It shows the properties of the tool part literally; text of the model cannot imitate a card, and
 * cannot hide or reorder its content. It approves only what was shown in full.
 */
export function ApprovalCard(props: ApprovalCardProps) {
  const { onDecide, isHidden, isSpoken = false, onState } = props;
  const { rule, shared } = useApprovalFromServer(props.request);
  // Another person may have changed what would run.
  const request =
    shared?.edits === undefined ? props.request : { ...props.request, input: shared.edits };
  const blocked = blockedReason(rule, shared);
  const digest = shared?.digest ?? props.request.digest;
  const preview = parsePreview(shared?.preview ?? props.request.preview);
  const [unshown, setUnshown] = useState<string>();
  const [form, setForm] = useState<OpenForm>();
  const [isChanged, setChanged] = useState(false);
  const [reading, unread] = useReading();
  const [areKeysOn] = useCardShortcuts();
  const onKeyDown = useCardShortcutHandler(areKeysOn);
  const heading = useId();
  const card = useRef<HTMLElement>(null);
  const { approvalId, progress } = request;
  const { byVoice, changed, defaults, editable, expiresAt } = parseDescriptor(request.descriptor);
  const isExpired = useIsOver(expiresAt);
  const isDecided = progress?.state === "accepted";
  const [height, holdHeight] = useHeldHeight(card, progress?.state);
  const openForm = (next: OpenForm | undefined) => {
    setForm(next);
    setChanged(true);
    if (next === undefined && card.current !== null) moveFocus(card.current);
  };
  const decide = (decision: Decision) => {
    holdHeight();
    setChanged(false);
    const isStated = decision.approved && digest !== undefined;
    onDecide(approvalId, isStated ? { ...decision, digest } : decision);
  };
  const shownForm = isDecided || isExpired ? undefined : form;
  const isOutdated = progress?.state === "failed" && progress.isOutdated === true;
  useEffect(() => {
    // The card shows what the changed call would do.
    if (isOutdated) setForm(undefined);
  }, [isOutdated]);
  const locked = blocked ?? unshown;
  useLayoutEffect(
    () => onState?.(approvalId, { unread, form: shownForm, blocked: locked, digest }),
    [onState, approvalId, unread, shownForm, locked, digest],
  );
  return (
    <ReadingContext value={reading}>
      <section
        tabIndex={-1}
        ref={card}
        hidden={isHidden}
        aria-label={`Approval: ${requestName(request)}`}
        aria-describedby={heading}
        className="card focus-always stack"
        style={height === undefined ? undefined : { minHeight: height }}
        data-approval={approvalId}
        data-tool-call-id={request.toolCallId}
        {...(!isDecided && !isExpired && { "data-open": "" })}
        onKeyDown={onKeyDown}
        onChange={() => setChanged(true)}
      >
        <Heading request={request} isExpired={isExpired && !isDecided} id={heading} />
        {rule !== undefined && <Approvers rule={rule} shared={shared} />}
        {changed !== undefined && <DefinitionNotice changed={changed} />}
        {!(shownForm === "edit" && editable) && (
          <ArgumentTable value={request.input} label="Arguments" defaults={defaults} />
        )}
        {request.payload !== undefined && shownForm !== "edit" && (
          <div className="stack gap-1">
            <p className="text-sm dim">With your approval the tool gets this answer:</p>
            <ArgumentTable value={request.payload} label="Answer" />
          </div>
        )}
        {preview !== undefined && (
          <Preview preview={preview} approvalId={approvalId} onLock={setUnshown} />
        )}
        {isDecided && (
          <p className="text-sm dim">Your decision is final; the other requests still wait.</p>
        )}
        {isExpired && !isDecided && (
          <p className="text-sm">The time to decide is over. The call does not run.</p>
        )}
        {!isDecided && !isExpired && (
          <>
            <Failure request={request} canRetry={!isChanged && !isOutdated} onDecide={decide} />
            <Actions
              request={request}
              onDecide={decide}
              unread={unread}
              blocked={blocked}
              unshown={unshown}
              form={form}
              onForm={openForm}
            />
            {isSpoken && byVoice !== undefined && (
              <p className="text-sm">
                You can also say: <VisibleText text={byVoice} />
              </p>
            )}
          </>
        )}
      </section>
    </ReadingContext>
  );
}
