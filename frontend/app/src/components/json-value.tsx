import "./json-value.css";
import { digitGroups, jsonText, numberText } from "./canonical-number.ts";
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
