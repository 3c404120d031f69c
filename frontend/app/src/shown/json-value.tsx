import { Box, Text } from "@mantine/core";
import { Visible } from "./visible.tsx";

function Absent({ children }: { readonly children: string }) {
  return (
    <Text span inherit c="dimmed" fs="italic">
      {children}
    </Text>
  );
}

/** Any JSON value, written so that texts cannot be taken for numbers or for structure. */
export function JsonValue({ value }: { readonly value: unknown }) {
  if (typeof value === "string") {
    return value === "" ? <Absent>empty text</Absent> : <Visible text={value} />;
  }
  if (typeof value === "object" && value !== null) {
    return (
      <Box component="pre" className="json" ff="monospace" fz="sm">
        <Visible text={JSON.stringify(value, null, 2)} />
      </Box>
    );
  }
  if (value === undefined || value === null) return <Absent>nothing</Absent>;
  return (
    <Text span inherit ff="monospace">
      {String(value)}
    </Text>
  );
}
