import { Anchor, List, Stack, Text } from "@mantine/core";
import type { SourceDocumentUIPart, SourceUrlUIPart } from "ai";
import { visibleName } from "../components/visible-text.ts";
import { safeLink } from "../markdown/safe-urls.ts";

export type Source = SourceUrlUIPart | SourceDocumentUIPart;

function SourceLink({ source }: { readonly source: Source }) {
  if (source.type === "source-document") return visibleName(source.title);
  const name = visibleName(source.title ?? source.url);
  const url = safeLink(source.url);
  if (url === undefined) return name;
  return (
    <Anchor href={url} title={url} target="_blank" rel="noopener noreferrer" inherit>
      {name}
    </Anchor>
  );
}

/** The sources of an answer. */
export function Sources({ sources }: { readonly sources: readonly Source[] }) {
  if (sources.length === 0) return null;
  return (
    <Stack component="section" gap={4} aria-label="Sources">
      <Text size="sm" fw={600}>
        Sources
      </Text>
      <List size="sm" className="literal">
        {sources.map((source) => (
          <List.Item key={source.sourceId}>
            <SourceLink source={source} />
          </List.Item>
        ))}
      </List>
    </Stack>
  );
}
