import { isRecord } from "./approval-requests.ts";
import type { Schema } from "./argument-shapes.ts";
import { EditForm } from "./edit-form.tsx";

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

interface PayloadFormProps {
  readonly payload: unknown;
  readonly isSending: boolean;
  readonly onApprove: (payload: unknown) => void;
  readonly onCancel: () => void;
}

const NO_DEFAULTS = {};

/** A form to approve a call with another payload than the requested one (A7). */
export function PayloadForm({ payload, isSending, onApprove, onCancel }: PayloadFormProps) {
  const isObject = isRecord(payload);
  const input = isObject ? payload : { answer: payload };
  return (
    <EditForm
      label="Edit the answer"
      schema={payloadSchema(input)}
      input={input}
      defaults={NO_DEFAULTS}
      isSending={isSending}
      onApprove={(values) => onApprove(isObject ? values : values.answer)}
      onCancel={onCancel}
    />
  );
}
