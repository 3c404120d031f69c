import { Box, Button, Mark, Table, Text } from "@mantine/core";
import { Fragment, useState } from "react";
import { formatCount, type Piece, visiblePieces } from "./visible-text.ts";

/** Longer text is truncated until it is expanded. */
const MAX_LENGTH = 600;

function VisiblePiece({ piece }: { readonly piece: Piece }) {
  if (piece.kind === "text") return piece.text;
  const times = piece.count > 1 ? ` ×${piece.count}` : "";
  return (
    <Mark title="Invisible character">
      {piece.name}
      {times}
    </Mark>
  );
}

/**
 * Text of a tool or a model, rendered literally: without markup, with the names of invisible
 * characters, and isolated so that right-to-left text does not affect its surroundings.
 */
export function VisibleText({ text }: { readonly text: string }) {
  const [isExpanded, setExpanded] = useState(false);
  const isLong = text.length > MAX_LENGTH;
  const shown = isLong && !isExpanded ? text.slice(0, MAX_LENGTH) : text;
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
          <Button size="compact-xs" variant="default" onClick={() => setExpanded(!isExpanded)}>
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

/** A JSON value, formatted so that text cannot be mistaken for a number or a structure. */
export function JsonValue({ value }: { readonly value: unknown }) {
  if (typeof value === "string") {
    return value === "" ? <Placeholder>empty text</Placeholder> : <VisibleText text={value} />;
  }
  if (typeof value === "object" && value !== null) {
    return (
      <Box component="pre" className="json" ff="monospace" fz="sm">
        <VisibleText text={JSON.stringify(value, null, 2)} />
      </Box>
    );
  }
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

/** A table of the properties of a JSON object. */
export function FieldTable({ value, label }: { readonly value: unknown; readonly label: string }) {
  const rows = isRecord(value) ? Object.entries(value) : [["value", value] as const];
  if (rows.length === 0) return <Text size="sm">No {label.toLowerCase()}</Text>;
  return (
    <Table variant="vertical" layout="fixed" withTableBorder aria-label={label}>
      <Table.Tbody>
        {rows.map(([name, field]) => (
          <Table.Tr key={name}>
            <Table.Th scope="row" w="30%">
              <VisibleText text={name} />
            </Table.Th>
            <Table.Td>
              <JsonValue value={field} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
