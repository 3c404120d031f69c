import { isRecord } from "../is-record.ts";
import type { ApprovalRequest } from "./approval-requests.ts";
import { parseDescriptor } from "./descriptor.ts";
import { EditForm, type EditSection } from "./edit-form.tsx";
import type { Schema } from "./edit-shapes.ts";

/** The JSON schema of the values that may replace a payload: those of the same shape (A7). */
export function payloadSchema(payload: unknown): Schema {
  if (Array.isArray(payload)) {
    const [first = {}, ...others] = payload.map(payloadSchema);
    const isSame = others.every((each) => JSON.stringify(each) === JSON.stringify(first));
    return { type: "array", items: isSame ? first : {} };
  }
  if (isRecord(payload)) {
    const members = Object.entries(payload);
    return {
      type: "object",
      properties: Object.fromEntries(members.map(([name, value]) => [name, payloadSchema(value)])),
      required: members.map(([name]) => name),
    };
  }
  return payload === null ? {} : { type: typeof payload };
}

const NO_DEFAULTS = {};

function argumentSection({ descriptor, input }: ApprovalRequest): EditSection {
  const { defaults, schema } = parseDescriptor(descriptor);
  return { label: "Edit the arguments", schema, input, defaults };
}

/** The values of a form; null is a field without one. */
function withoutNulls(values: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}

/** The answer to a form: each of its fields, so that a cleared one does not get its default. */
function withNulls(values: Record<string, unknown> | undefined, payload: object) {
  return Object.fromEntries(Object.keys(payload).map((name) => [name, values?.[name] ?? null]));
}

function answerSection({ payload, payloadSchema: form }: ApprovalRequest): EditSection {
  if (form !== undefined && isRecord(payload)) {
    const input = withoutNulls(payload);
    return { label: "Fill in the form", schema: form, input, defaults: NO_DEFAULTS };
  }
  const input = isRecord(payload) ? payload : { answer: payload };
  return { label: "Edit the answer", schema: payloadSchema(input), input, defaults: NO_DEFAULTS };
}

function isSame(values: unknown, input: unknown): boolean {
  return JSON.stringify(values) === JSON.stringify(input);
}

/** What a form approves in place of the request. */
interface ApprovalEdits {
  readonly edit?: Record<string, unknown>;
  readonly payload?: unknown;
}

interface ApproveEditedFormProps {
  readonly request: ApprovalRequest;
  readonly isSending: boolean;
  readonly onApprove: (edits: ApprovalEdits) => void;
  readonly onCancel: () => void;
}

/** A form to approve a call with other arguments and another payload in one decision (A7). */
export function ApproveEditedForm({ request, onApprove, ...props }: ApproveEditedFormProps) {
  const { payload, payloadSchema: form } = request;
  const { editable } = parseDescriptor(request.descriptor);
  const sections = [
    ...(editable ? [argumentSection(request)] : []),
    ...(payload !== undefined ? [answerSection(request)] : []),
  ];
  const approve = (values: readonly Record<string, unknown>[]) => {
    const edit = editable ? values[0] : undefined;
    const answer = payload === undefined ? undefined : values.at(-1);
    const plain = isRecord(payload) ? answer : answer?.answer;
    const edited = form && isRecord(payload) ? withNulls(answer, payload) : plain;
    // An answer alone does not edit the arguments, which need not fit the schema of the tool.
    onApprove({
      ...(edit && (answer === undefined || !isSame(edit, request.input)) && { edit }),
      ...(answer && (edit === undefined || !isSame(edited, payload)) && { payload: edited }),
    });
  };
  return <EditForm {...props} sections={sections} onApprove={approve} />;
}
