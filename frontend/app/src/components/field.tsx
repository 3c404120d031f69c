import "./field.css";
import { type ReactNode, useId } from "react";

/** The texts around a form control. */
export interface FieldTexts {
  readonly label?: string | undefined;
  readonly description?: string | undefined;
  readonly error?: string | undefined;
  /** A button beside the label, such as one that removes the field. */
  readonly action?: ReactNode;
}

/** The attributes that connect a control with its texts. */
export interface ControlAttributes {
  readonly id: string;
  readonly "aria-describedby"?: string;
  readonly "aria-invalid"?: true;
}

interface FieldProps extends FieldTexts {
  readonly className?: string | undefined;
  readonly children: (attributes: ControlAttributes) => ReactNode;
}

/** A form control with its label, description and error. */
export function Field(props: FieldProps) {
  const { label, description, error, action, className = "", children } = props;
  const id = useId();
  const descriptionId = `${id}-description`;
  const errorId = `${id}-error`;
  const describedBy = [
    description !== undefined && descriptionId,
    error !== undefined && errorId,
  ].filter(Boolean);
  return (
    <div className={`field ${className}`}>
      {label !== undefined && (
        <div className="field-head">
          <label className="field-label" htmlFor={id}>
            {label}
          </label>
          {action}
        </div>
      )}
      {description !== undefined && (
        <span className="field-description" id={descriptionId}>
          {description}
        </span>
      )}
      {children({
        id,
        ...(describedBy.length > 0 && { "aria-describedby": describedBy.join(" ") }),
        ...(error !== undefined && { "aria-invalid": true }),
      })}
      {error !== undefined && (
        <span className="field-error" id={errorId}>
          {error}
        </span>
      )}
    </div>
  );
}
