import "./argument-table.css";
import { Fragment } from "react";
import { JsonValue } from "../components/json-value.tsx";
import { TextWarnings } from "../components/text-warnings.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { isRecord } from "../is-record.ts";
import { currencyOf, isAmount } from "./amount-and-currency-arguments.ts";
import { dateInWords } from "./date-arguments.ts";

/** Deeper values are shown as JSON. */
const MAX_DEPTH = 4;
/** Longer lists are shown as JSON, which is folded until it is opened. */
const MAX_ITEMS = 24;

interface ValueProps {
  readonly name: string;
  readonly value: unknown;
  readonly currency: string | undefined;
  readonly depth: number;
}

function DateValue({ text }: { readonly text: string }) {
  const words = dateInWords(text);
  return (
    <>
      <VisibleText text={text} />
      {words !== undefined && <span className="dim value-note">{words}</span>}
    </>
  );
}

function ListValue({ items, ...rest }: Omit<ValueProps, "value"> & { items: readonly unknown[] }) {
  return (
    <ol className="value-list">
      {items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an item is identified by its position.
        <li key={index}>
          <Value {...rest} value={item} depth={rest.depth + 1} />
        </li>
      ))}
    </ol>
  );
}

/** A value as a field: literally, with what a number or a text stands for beside it. */
function Value({ name, value, currency, depth }: ValueProps) {
  const isShallow = depth < MAX_DEPTH;
  if (Array.isArray(value) && value.length > 0 && value.length <= MAX_ITEMS && isShallow) {
    return <ListValue name={name} items={value} currency={currency} depth={depth} />;
  }
  const size = isRecord(value) ? Object.keys(value).length : 0;
  if (isRecord(value) && size > 0 && size <= MAX_ITEMS && isShallow) {
    return <Rows args={value} defaults={{}} depth={depth + 1} label={name} />;
  }
  if (typeof value === "string" && value !== "") return <DateValue text={value} />;
  return (
    <>
      <JsonValue value={value} />
      {currency !== undefined && isAmount(name, value) && <span> {currency}</span>}
    </>
  );
}

/** The name of an argument, or the path of a nested one, which may be broken after its dots. */
function ArgumentName({ name }: { readonly name: string }) {
  return name.split(/(?<=\.)/).map((step, index, steps) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a step is identified by its position.
    <Fragment key={index}>
      <VisibleText text={step} />
      {index < steps.length - 1 && <wbr />}
    </Fragment>
  ));
}

interface RowsProps {
  readonly args: Readonly<Record<string, unknown>>;
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly label: string;
  readonly depth?: number;
}

function Rows({ args, defaults, label, depth = 0 }: RowsProps) {
  const omitted = Object.entries(defaults).filter(([name]) => !Object.hasOwn(args, name));
  const rows = [
    ...Object.entries(args).map(([name, value]) => ({ name, value, isDefault: false })),
    ...omitted.map(([name, value]) => ({ name, value, isDefault: true })),
  ];
  const currency = currencyOf(Object.fromEntries(rows.map(({ name, value }) => [name, value])));
  return (
    <table className="table field-table" aria-label={label}>
      <tbody>
        {rows.map(({ name, value, isDefault }) => (
          <tr key={name}>
            <th scope="row">
              <ArgumentName name={name} />
              <TextWarnings value={name} />
            </th>
            <td>
              <Value name={name} value={value} currency={currency} depth={depth} />
              {isDefault && (
                <span className="dim">
                  {name.includes("[]")
                    ? " (default of the tool, for each item without it)"
                    : " (default of the tool, not given by the agent)"}
                </span>
              )}
              {depth === 0 && <TextWarnings value={value} />}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface ArgumentTableProps {
  readonly value: unknown;
  readonly label: string;
  /** The values of omitted arguments, which the tool will use. */
  readonly defaults?: Readonly<Record<string, unknown>>;
}

/**
 * The arguments of a call as fields: lists as lists, objects as tables, and dates and amounts
 * literally with the day and the currency beside them.
 */
export function ArgumentTable({ value, label, defaults = {} }: ArgumentTableProps) {
  const args = isRecord(value) ? value : { value };
  if (Object.keys(args).length + Object.keys(defaults).length === 0) {
    return <p className="text-sm">No {label.toLowerCase()}</p>;
  }
  return <Rows args={args} defaults={defaults} label={label} />;
}
