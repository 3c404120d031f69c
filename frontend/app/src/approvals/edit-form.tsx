import { Button, Checkbox, Group, NativeSelect, Stack, Textarea, TextInput } from "@mantine/core";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { hiddenIn, visibleName } from "../shown/visible-text.ts";
import { type EditField, editFields, readField, WrongValue } from "./edit-fields.ts";

interface EditFormProps {
  readonly schema: Record<string, unknown> | undefined;
  readonly input: unknown;
  readonly onApprove: (edited: Record<string, unknown>) => void;
  readonly onCancel: () => void;
}

interface FieldProps {
  readonly field: EditField;
  readonly text: string;
  readonly error: string | undefined;
  readonly onChange: (text: string) => void;
}

function Field({ field, text, error, onChange }: FieldProps) {
  const hidden = hiddenIn(text);
  const warning = hidden.length > 0 && `Holds what cannot be seen: ${hidden.join(", ")}`;
  const own = {
    label: visibleName(field.name),
    description: warning || (field.description && visibleName(field.description)),
    error,
  };
  switch (field.kind) {
    case "boolean":
      return (
        <Checkbox
          {...own}
          checked={text === "true"}
          onChange={(event) => onChange(String(event.currentTarget.checked))}
        />
      );
    case "choice":
      return (
        <NativeSelect
          {...own}
          data={field.required ? [...field.choices] : ["", ...field.choices]}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    case "number":
    case "integer":
      return (
        <TextInput
          {...own}
          inputMode="decimal"
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    default:
      return (
        <Textarea
          {...own}
          autosize
          maxRows={10}
          {...(field.kind === "json" && { ff: "monospace" })}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
  }
}

/** Approve a call with other arguments than the agent asked for (A7). */
export function EditForm({ schema, input, onApprove, onCancel }: EditFormProps) {
  const [fields] = useState(() => editFields(schema, input));
  const [texts, setTexts] = useState(() => fields.map((field) => field.text));
  const [errors, setErrors] = useState<readonly (string | undefined)[]>([]);

  const approve = () => {
    const edited: Record<string, unknown> = {};
    const wrong = fields.map((field, index) => {
      try {
        const value = readField(field, texts[index] ?? "");
        if (value !== undefined) edited[field.name] = value;
        return undefined;
      } catch (error) {
        if (error instanceof WrongValue) return error.message;
        throw error;
      }
    });
    setErrors(wrong);
    if (wrong.every((error) => error === undefined)) onApprove(edited);
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
          Keep as asked
        </Button>
      </Group>
    </Stack>
  );
}
