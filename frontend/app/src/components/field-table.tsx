import "./table.css";
import { isRecord } from "../is-record.ts";
import { JsonValue } from "./json-value.tsx";
import { TextWarnings } from "./text-warnings.tsx";
import { VisibleText } from "./visible-text.tsx";

interface FieldTableProps {
  readonly value: unknown;
  readonly label: string;
}

/** A table of the properties of a JSON object. */
export function FieldTable({ value, label }: FieldTableProps) {
  const fields = isRecord(value) ? Object.entries(value) : [["value", value] as const];
  if (fields.length === 0) return <p className="text-sm">No {label.toLowerCase()}</p>;
  return (
    <table className="table field-table" aria-label={label}>
      <tbody>
        {fields.map(([name, field]) => (
          <tr key={name}>
            <th scope="row">
              <VisibleText text={name} />
              <TextWarnings value={name} />
            </th>
            <td>
              <JsonValue value={field} />
              <TextWarnings value={field} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
