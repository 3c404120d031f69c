import { Box, Group, Stack, Text } from "@mantine/core";
import { useMemo } from "react";
import { valueFindings } from "../text-checks/findings.ts";
import { Warning } from "./icons.tsx";
import { visibleName } from "./visible-text.ts";

/** The number of findings that are listed. */
const MAX_FINDINGS = 8;
const MAX_NAME = 60;

function sentencesFor(value: unknown, name: string | undefined): string[] {
  const sentences = valueFindings(value).map(({ path, finding }) => {
    const place = [name, path].filter(Boolean).join(" ");
    return place === "" ? finding : `${visibleName(place.slice(0, MAX_NAME))}: ${finding}`;
  });
  const unique = [...new Set(sentences)];
  const more = unique.length - MAX_FINDINGS;
  return more > 0
    ? [...unique.slice(0, MAX_FINDINGS), `${more} more places have such characters.`]
    : unique;
}

interface FindingsProps {
  /** A text, or a JSON value with texts. */
  readonly value: unknown;
  /** How to refer to the value; undefined if the findings are beside it. */
  readonly name?: string;
}

/** Warnings about characters that can mislead a reader; nothing if there are none. */
export function Findings({ value, name }: FindingsProps) {
  const sentences = useMemo(() => sentencesFor(value, name), [value, name]);
  if (sentences.length === 0) return null;
  return (
    <Stack gap={2} mt={4}>
      {sentences.map((sentence) => (
        <Group key={sentence} gap={6} wrap="nowrap" align="flex-start">
          <Box component="span" className="warning">
            <Warning size={16} />
          </Box>
          <Text size="sm" component="bdi" inherit={false} className="literal">
            {sentence}
          </Text>
        </Group>
      ))}
    </Stack>
  );
}
