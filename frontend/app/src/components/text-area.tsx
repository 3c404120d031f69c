import type { ComponentProps } from "react";
import { Field, type FieldTexts } from "./field.tsx";

const MAX_ROWS = 10;

type TextAreaProps = Omit<ComponentProps<"textarea">, "onChange" | "value"> &
  FieldTexts & {
    readonly value: string;
    readonly onChange: (text: string) => void;
    readonly isMonospace?: boolean;
  };

/** The number of lines of a text, for browsers that do not size a control by its content. */
export function rowsOf(text: string, maximum: number): number {
  return Math.min(maximum, text.split("\n").length);
}

/** A text input of several lines that grows with its text. */
export function TextArea(props: TextAreaProps) {
  const {
    label,
    description,
    error,
    action,
    className,
    onChange,
    isMonospace = false,
    ...rest
  } = props;
  return (
    <Field {...{ label, description, error, action, className }}>
      {(attributes) => (
        <textarea
          rows={rowsOf(rest.value, MAX_ROWS)}
          {...rest}
          {...attributes}
          className={`control text-area ${isMonospace ? "mono" : ""}`}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
