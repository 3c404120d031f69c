import "./field.css";
import { useId } from "react";

interface RadioProps {
  readonly label: string;
  /** The name that the radio buttons of a group share. */
  readonly name: string;
  readonly isChecked: boolean;
  readonly onSelect: () => void;
}

/** A radio button with its label. */
export function Radio({ label, name, isChecked, onSelect }: RadioProps) {
  const id = useId();
  return (
    <div className="choice">
      <input type="radio" id={id} name={name} checked={isChecked} onChange={onSelect} />
      <label htmlFor={id}>{label}</label>
    </div>
  );
}
