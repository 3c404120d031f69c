import { Box, Button, Mark, Table, Text } from "@mantine/core";
import { Fragment, useState } from "react";
import { characterName, codePointName } from "../text-checks/character-names.ts";
import { Findings } from "./findings.tsx";
import { digitGroups, jsonText, numberText } from "./number-text.ts";
import { useLongText } from "./reading.ts";
import { formatCount, type Piece, visiblePieces } from "./visible-text.ts";

/** Longer text is truncated until it is expanded. */
const MAX_LENGTH = 600;
const MAX_LINES = 24;

/** The beginning of a long text; the text itself if it is not long. */
function beginningOf(text: string): string {
  const lines = text.slice(0, MAX_LENGTH + 1).split("\n");
  if (lines.length > MAX_LINES) return lines.slice(0, MAX_LINES).join("\n").slice(0, MAX_LENGTH);
  if (text.length <= MAX_LENGTH) return text;
  // A character of two code units is not divided.
  return text.slice(0, MAX_LENGTH).replace(/[\ud800-\udbff]$/, "");
}

function VisiblePiece({ piece }: { readonly piece: Piece }) {
  if (piece.kind === "text") return piece.text;
  const times = piece.count > 1 ? ` ×${piece.count}` : "";
  return (
    <Mark title={characterName(piece.character)}>
      {codePointName(piece.character)}
      {times}
    </Mark>
  );
}

/**
 * Text of a tool or a model, rendered literally: without markup, with the names of hidden
 * characters, and isolated so that right-to-left text does not affect its surroundings.
 */
export function VisibleText({ text }: { readonly text: string }) {
  const [isExpanded, setExpanded] = useState(false);
  const beginning = beginningOf(text);
  const isLong = beginning !== text;
  const markRead = useLongText(text, isLong);
  const toggle = () => {
    markRead();
    setExpanded(!isExpanded);
  };
  const shown = isExpanded ? text : beginning;
  return (
    <bdi className="literal">
      {visiblePieces(shown).map((piece, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a piece is identified by its position.
        <Fragment key={index}>
          <VisiblePiece piece={piece} />
        </Fragment>
      ))}
      {isLong && (
        <>
          {isExpanded ? " " : "… "}
          <Button size="compact-xs" variant="default" onClick={toggle}>
            {isExpanded ? "Show less" : `Show all ${formatCount(text.length)} characters`}
          </Button>
        </>
      )}
    </bdi>
  );
}

function Placeholder({ children }: { readonly children: string }) {
  return (
    <Text span inherit c="dimmed" fs="italic">
      {children}
    </Text>
  );
}

/** A number in the form of `numberText`, with space between groups of digits. */
function NumberValue({ value }: { readonly value: number }) {
  return (
    <Text span inherit ff="monospace">
      {digitGroups(numberText(value)).map((group, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a group is identified by its position.
        <span key={index} className="digits">
          {group}
        </span>
      ))}
    </Text>
  );
}

/** A JSON value, formatted so that text cannot be mistaken for a number or a structure. */
export function JsonValue({ value }: { readonly value: unknown }) {
  if (typeof value === "string") {
    return value === "" ? <Placeholder>empty text</Placeholder> : <VisibleText text={value} />;
  }
  if (typeof value === "object" && value !== null) {
    return (
      <Box component="pre" className="json" ff="monospace" fz="sm">
        <VisibleText text={jsonText(value)} />
      </Box>
    );
  }
  if (typeof value === "number") return <NumberValue value={value} />;
  if (value === undefined || value === null) return <Placeholder>nothing</Placeholder>;
  return (
    <Text span inherit ff="monospace">
      {String(value)}
    </Text>
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface FieldTableProps {
  readonly value: unknown;
  readonly label: string;
  /** The values of omitted properties. */
  readonly defaults?: Readonly<Record<string, unknown>>;
}

interface FieldRowProps {
  readonly name: string;
  readonly field: unknown;
  readonly isDefault: boolean;
}

function FieldRow({ name, field, isDefault }: FieldRowProps) {
  return (
    <Table.Tr>
      <Table.Th scope="row" w="30%">
        <VisibleText text={name} />
        <Findings value={name} />
      </Table.Th>
      <Table.Td>
        <JsonValue value={field} />
        {isDefault && (
          <Text span inherit c="dimmed">
            {" "}
            (default, not given by the agent)
          </Text>
        )}
        <Findings value={field} />
      </Table.Td>
    </Table.Tr>
  );
}

/** A table of the properties of a JSON object, followed by the defaults of omitted ones. */
export function FieldTable({ value, label, defaults = {} }: FieldTableProps) {
  const given = isRecord(value) ? Object.entries(value) : [["value", value] as const];
  const omitted = Object.entries(defaults).filter(
    ([name]) => !(isRecord(value) && Object.hasOwn(value, name)),
  );
  if (given.length + omitted.length === 0) {
    return <Text size="sm">No {label.toLowerCase()}</Text>;
  }
  return (
    <Table variant="vertical" layout="fixed" withTableBorder aria-label={label}>
      <Table.Tbody>
        {given.map(([name, field]) => (
          <FieldRow key={name} name={name} field={field} isDefault={false} />
        ))}
        {omitted.map(([name, field]) => (
          <FieldRow key={name} name={name} field={field} isDefault />
        ))}
      </Table.Tbody>
    </Table>
  );
}
