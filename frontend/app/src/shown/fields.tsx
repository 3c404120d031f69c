import { Table, Text } from "@mantine/core";
import { JsonValue } from "./json-value.tsx";
import { Visible } from "./visible.tsx";

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The arguments of a call, one row per field. */
export function Fields({ value, label }: { readonly value: unknown; readonly label: string }) {
  const rows = isRecord(value) ? Object.entries(value) : [["value", value] as const];
  if (rows.length === 0) return <Text size="sm">No {label.toLowerCase()}</Text>;
  return (
    <Table variant="vertical" layout="fixed" withTableBorder aria-label={label}>
      <Table.Tbody>
        {rows.map(([name, field]) => (
          <Table.Tr key={name}>
            <Table.Th scope="row" w="30%">
              <Visible text={name} />
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
