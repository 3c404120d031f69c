import "./table.css";
import "./json-value.css";
import { isRecord } from "../is-record.ts";
import { digitGroups, jsonText, numberText } from "./canonical-number.ts";
import { TextWarnings } from "./text-warnings.tsx";
import { VisibleText } from "./visible-text.tsx";

function Placeholder({ children }: { readonly children: string }) {
  return <em className="dim">{children}</em>;
}

/** A number in the form of `numberText`, with space between groups of digits. */
function NumberValue({ value }: { readonly value: number }) {
  return (
    <span className="mono">
      {digitGroups(numberText(value)).map((group, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a group is identified by its position.
        <span key={index} className="digits">
          {group}
        </span>
      ))}
    </span>
  );
}

/** A JSON value, formatted so that text cannot be mistaken for a number or a structure. */
export function JsonValue({ value }: { readonly value: unknown }) {
  if (typeof value === "string") {
    return value === "" ? <Placeholder>empty text</Placeholder> : <VisibleText text={value} />;
  }
  if (typeof value === "object" && value !== null) {
    return (
      <pre className="json">
        <VisibleText text={jsonText(value)} />
      </pre>
    );
  }
  if (typeof value === "number") return <NumberValue value={value} />;
  if (value === undefined || value === null) return <Placeholder>nothing</Placeholder>;
  return <span className="mono">{String(value)}</span>;
}

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
