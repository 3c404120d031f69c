import { Anchor, List, Stack, Text } from "@mantine/core";
import type { SourceDocumentUIPart, SourceUrlUIPart } from "ai";
import { safeLink } from "../markdown/own-files.ts";
import { visibleName } from "../shown/visible-text.ts";

export type Source = SourceUrlUIPart | SourceDocumentUIPart;

function Named({ source }: { readonly source: Source }) {
  if (source.type === "source-document") return visibleName(source.title);
  const name = visibleName(source.title ?? source.url);
  const address = safeLink(source.url);
  if (address === undefined) return name;
  return (
    <Anchor href={address} title={address} target="_blank" rel="noopener noreferrer" inherit>
      {name}
    </Anchor>
  );
}

/** What an answer rests on. */
export function Sources({ sources }: { readonly sources: readonly Source[] }) {
  if (sources.length === 0) return null;
  return (
    <Stack component="section" gap={4} aria-label="Sources">
      <Text size="sm" fw={600}>
        Sources
      </Text>
      <List size="sm" className="as-written">
        {sources.map((source) => (
          <List.Item key={source.sourceId}>
            <Named source={source} />
          </List.Item>
        ))}
      </List>
    </Stack>
  );
}
