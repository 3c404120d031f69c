import type { ComponentProps } from "react";
import { Field, type FieldTexts } from "./field.tsx";

export interface Option<Value extends string> {
  readonly value: Value;
  readonly label: string;
}

type SelectProps<Value extends string> = Omit<ComponentProps<"select">, "onChange" | "value"> &
  FieldTexts & {
    readonly options: readonly Option<Value>[];
    readonly value: Value;
    readonly onChange: (value: Value) => void;
  };

/** A choice of one option, with the control of the browser. */
export function Select<Value extends string>(props: SelectProps<Value>) {
  const { label, description, error, action, className, options, onChange, ...rest } = props;
  return (
    <Field {...{ label, description, error, action, className }}>
      {(attributes) => (
        <select
          {...rest}
          {...attributes}
          className="control"
          onChange={(event) => onChange(event.currentTarget.value as Value)}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
