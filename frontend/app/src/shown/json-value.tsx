import { Box, Code } from "@mantine/core";
import { Visible } from "./visible.tsx";

/** Any JSON value, written so that texts cannot be taken for numbers or for structure. */
export function JsonValue({ value }: { readonly value: unknown }) {
  if (typeof value === "string") {
    return value === "" ? <Code>empty text</Code> : <Visible text={value} />;
  }
  if (typeof value === "object" && value !== null) {
    return (
      <Box component="pre" className="json" ff="monospace" fz="sm">
        <Visible text={JSON.stringify(value, null, 2)} />
      </Box>
    );
  }
  return <Code>{value === undefined ? "nothing" : String(value)}</Code>;
}
