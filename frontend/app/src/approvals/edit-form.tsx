import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button } from "../components/button.tsx";
import { Select } from "../components/select.tsx";
import { TextArea } from "../components/text-area.tsx";
import { TextField } from "../components/text-field.tsx";
import { visibleJson, visibleName } from "../components/visible-text.ts";
import { textFindings } from "../text-checks/findings.ts";
import { AcceptButton } from "./accept-button.tsx";
import { type EditField, editFields, InvalidValue, parseField } from "./edit-fields.ts";

interface EditFormProps {
  readonly schema: Record<string, unknown> | undefined;
  readonly input: unknown;
  /** The values of omitted arguments. */
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly isSending: boolean;
  readonly onApprove: (edit: Record<string, unknown>) => void;
  readonly onCancel: () => void;
}

interface FieldProps {
  readonly field: EditField;
  readonly text: string;
  readonly error: string | undefined;
  /** The value of the argument if the field is empty, as JSON. */
  readonly default: string | undefined;
  readonly onChange: (text: string) => void;
}

/** The findings in a text, or else its description. */
function describe({ field, text, default: value }: FieldProps): string | undefined {
  const findings = textFindings(text);
  if (findings.length > 0) return findings.join(" ");
  const description = field.description && visibleName(field.description);
  const empty = value === undefined ? undefined : `If empty, the tool uses ${value}.`;
  const isChanged = text !== field.text;
  const before = field.text === "" ? "nothing" : visibleName(field.text);
  const change = isChanged ? `Changed; the agent asked for ${before}.` : undefined;
  return [description, empty, change].filter(Boolean).join(" ") || undefined;
}

function Field(props: FieldProps) {
  const { field, text, error, onChange } = props;
  const inputProps = { label: visibleName(field.name), description: describe(props), error };
  switch (field.kind) {
    case "boolean":
    case "choice": {
      const values = field.required && text !== "" ? field.options : ["", ...field.options];
      const options = values.map((value) => ({ value, label: value }));
      return <Select {...inputProps} options={options} value={text} onChange={onChange} />;
    }
    case "number":
    case "integer":
      return <TextField {...inputProps} inputMode="decimal" value={text} onChange={onChange} />;
    default:
      return (
        <TextArea
          {...inputProps}
          isMonospace={field.kind === "json"}
          value={text}
          onChange={onChange}
        />
      );
  }
}

/** A form to approve a call with other arguments than the requested ones (A7). */
export function EditForm(props: EditFormProps) {
  const { schema, input, defaults, isSending, onApprove, onCancel } = props;
  const [fields] = useState(() => editFields(schema, input));
  const [texts, setTexts] = useState(() => fields.map((field) => field.text));
  const [errors, setErrors] = useState<readonly (string | undefined)[]>([]);

  const approve = () => {
    const entries: [name: string, value: unknown][] = [];
    const fieldErrors = fields.map((field, index) => {
      try {
        const value = parseField(field, texts[index] ?? "");
        if (value !== undefined) entries.push([field.name, value]);
        return undefined;
      } catch (error) {
        if (error instanceof InvalidValue) return error.message;
        throw error;
      }
    });
    setErrors(fieldErrors);
    // Unlike an assignment, this makes `__proto__` a property like any other.
    if (fieldErrors.every((error) => error === undefined)) onApprove(Object.fromEntries(entries));
  };

  const form = useRef<HTMLDivElement>(null);
  useEffect(() => {
    form.current?.querySelector<HTMLElement>("input, select, textarea")?.focus();
  }, []);

  const cancelOnEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
  };

  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    <div
      ref={form}
      className="stack"
      role="group"
      aria-label="Edit the arguments"
      onKeyDown={cancelOnEscape}
    >
      {fields.map((field, index) => (
        <Field
          key={field.name}
          field={field}
          text={texts[index] ?? ""}
          error={errors[index]}
          default={
            Object.hasOwn(defaults, field.name) ? visibleJson(defaults[field.name]) : undefined
          }
          onChange={(text) => setTexts(texts.with(index, text))}
        />
      ))}
      <div className="row">
        <AcceptButton variant="primary" isLocked={isSending} onAccept={approve}>
          Approve with changes
        </AcceptButton>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </div>
  );
}
