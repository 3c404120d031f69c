import { Button, Group, NativeSelect, Stack, Textarea, TextInput } from "@mantine/core";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { visibleJson, visibleName } from "../components/visible-text.ts";
import { textFindings } from "../text-checks/findings.ts";
import { type EditField, editFields, InvalidValue, parseField } from "./edit-fields.ts";

interface EditFormProps {
  readonly schema: Record<string, unknown> | undefined;
  readonly input: unknown;
  /** The values of omitted arguments. */
  readonly defaults: Readonly<Record<string, unknown>>;
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
  return [description, empty].filter(Boolean).join(" ") || undefined;
}

function Field(props: FieldProps) {
  const { field, text, error, onChange } = props;
  const inputProps = { label: visibleName(field.name), description: describe(props), error };
  switch (field.kind) {
    case "boolean":
    case "choice":
      return (
        <NativeSelect
          {...inputProps}
          data={field.required && text !== "" ? [...field.options] : ["", ...field.options]}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    case "number":
    case "integer":
      return (
        <TextInput
          {...inputProps}
          inputMode="decimal"
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    default:
      return (
        <Textarea
          {...inputProps}
          autosize
          maxRows={10}
          {...(field.kind === "json" && { ff: "monospace" })}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
  }
}

/** A form to approve a call with other arguments than the requested ones (A7). */
export function EditForm({ schema, input, defaults, onApprove, onCancel }: EditFormProps) {
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
    <Stack
      ref={form}
      gap="sm"
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
      <Group gap="xs">
        <Button onClick={approve}>Approve with changes</Button>
        <Button variant="default" onClick={onCancel}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}
