import { Button, Checkbox, Group, NativeSelect, Stack, Textarea, TextInput } from "@mantine/core";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { invisibleCharacters, visibleName } from "../components/visible-text.ts";
import { type EditField, editFields, InvalidValue, parseField } from "./edit-fields.ts";

interface EditFormProps {
  readonly schema: Record<string, unknown> | undefined;
  readonly input: unknown;
  readonly onApprove: (edit: Record<string, unknown>) => void;
  readonly onCancel: () => void;
}

interface FieldProps {
  readonly field: EditField;
  readonly text: string;
  readonly error: string | undefined;
  readonly onChange: (text: string) => void;
}

function Field({ field, text, error, onChange }: FieldProps) {
  const invisible = invisibleCharacters(text);
  const warning = invisible.length > 0 && `Contains invisible characters: ${invisible.join(", ")}`;
  const inputProps = {
    label: visibleName(field.name),
    description: warning || (field.description && visibleName(field.description)),
    error,
  };
  switch (field.kind) {
    case "boolean":
      return (
        <Checkbox
          {...inputProps}
          checked={text === "true"}
          onChange={(event) => onChange(String(event.currentTarget.checked))}
        />
      );
    case "choice":
      return (
        <NativeSelect
          {...inputProps}
          data={field.required ? [...field.options] : ["", ...field.options]}
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
export function EditForm({ schema, input, onApprove, onCancel }: EditFormProps) {
  const [fields] = useState(() => editFields(schema, input));
  const [texts, setTexts] = useState(() => fields.map((field) => field.text));
  const [errors, setErrors] = useState<readonly (string | undefined)[]>([]);

  const approve = () => {
    const edit: Record<string, unknown> = {};
    const fieldErrors = fields.map((field, index) => {
      try {
        const value = parseField(field, texts[index] ?? "");
        if (value !== undefined) edit[field.name] = value;
        return undefined;
      } catch (error) {
        if (error instanceof InvalidValue) return error.message;
        throw error;
      }
    });
    setErrors(fieldErrors);
    if (fieldErrors.every((error) => error === undefined)) onApprove(edit);
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
