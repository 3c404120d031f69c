import "./field.css";
import { useId } from "react";

interface CheckboxProps {
  readonly label: string;
  readonly description?: string | undefined;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

/** A checkbox with its label. */
export function Checkbox({ label, description, isChecked, onChange }: CheckboxProps) {
  const id = useId();
  return (
    <div className="choice">
      <input
        type="checkbox"
        id={id}
        checked={isChecked}
        aria-describedby={description === undefined ? undefined : `${id}-description`}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <label htmlFor={id}>{label}</label>
      {description !== undefined && (
        <span className="choice-description" id={`${id}-description`}>
          {description}
        </span>
      )}
    </div>
  );
}
