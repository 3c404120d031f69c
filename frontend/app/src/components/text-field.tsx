import type { ComponentProps } from "react";
import { Field, type FieldTexts } from "./field.tsx";

type TextFieldProps = Omit<ComponentProps<"input">, "onChange"> &
  FieldTexts & { readonly onChange: (text: string) => void };

/** A text input of one line. */
export function TextField(props: TextFieldProps) {
  const { label, description, error, action, className, onChange, ...rest } = props;
  return (
    <Field {...{ label, description, error, action, className }}>
      {(attributes) => (
        <input
          type="text"
          {...rest}
          {...attributes}
          className="control"
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
