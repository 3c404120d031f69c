import { Box, Group, Paper, Text } from "@mantine/core";
import { CopyButton } from "../shown/copy-button.tsx";

interface CodeBlockProps {
  readonly language: string;
  readonly code: string;
}

/** A piece of code in a box of its own, which scrolls sideways and can be copied. */
export function CodeBlock({ language, code }: CodeBlockProps) {
  return (
    <Paper withBorder role="group" aria-label={language === "" ? "Code" : `Code: ${language}`}>
      <Group justify="space-between" px="sm" py={4}>
        <Text size="xs" c="dimmed" ff="monospace">
          {language}
        </Text>
        <CopyButton text={code} label="Copy code" />
      </Group>
      <Box component="pre" className="code" ff="monospace" fz="sm" px="sm" pb="sm" tabIndex={0}>
        <code>{code}</code>
      </Box>
    </Paper>
  );
}
