import { Badge, Box, Button, Code, Drawer, Group, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { Disclosure } from "../components/disclosure.tsx";
import { JsonValue } from "../components/values.tsx";
import { visibleName } from "../components/visible-text.ts";
import type { Entry, WireLog } from "./wire-log.ts";

const REFRESH_INTERVAL = 250;
const PAGE_SIZE = 200;

/** The number of entries, polled so that recording does not trigger renderings. */
function useCount(log: WireLog): number {
  const [count, setCount] = useState(log.count);
  useEffect(() => {
    setCount(log.count());
    const timer = setInterval(() => setCount(log.count()), REFRESH_INTERVAL);
    return () => clearInterval(timer);
  }, [log]);
  return count;
}

function entryName({ body, kind }: Entry): string {
  return visibleName("type" in body ? String(body.type) : kind);
}

function Row({ entry, at }: { readonly entry: Entry; readonly at: number }) {
  return (
    <Box component="li" className="entry">
      <Disclosure
        label={
          <Group component="span" gap="xs">
            <Code>{`${(at / 1000).toFixed(3)} s`}</Code>
            <Badge size="sm">{entry.dir === "client" ? "sent" : "received"}</Badge>
            <Text span size="sm">
              {entryName(entry)}
            </Text>
          </Group>
        }
      >
        <JsonValue value={entry.body} />
      </Disclosure>
    </Box>
  );
}

function download(log: WireLog, chatId: string) {
  const url = URL.createObjectURL(new Blob([log.recording(chatId)], { type: "application/jsonl" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${chatId}.jsonl`;
  link.click();
  URL.revokeObjectURL(url);
}

/** The entries with their time in milliseconds since the first one. */
function withTime(entries: readonly Entry[]): { entry: Entry; at: number }[] {
  let at = 0;
  return entries.map((entry, index) => {
    at += index === 0 ? 0 : entry.delta_ms;
    return { entry, at };
  });
}

interface InspectorProps {
  readonly log: WireLog;
  readonly chatId: string;
  readonly onClose: () => void;
}

/** A drawer that lists the requests, chunks and frames of the current exchange. */
export function Inspector({ log, chatId, onClose }: InspectorProps) {
  const count = useCount(log);
  const [shown, setShown] = useState(PAGE_SIZE);
  const all = withTime(log.entries);
  return (
    <Drawer.Root
      opened
      onClose={onClose}
      position="right"
      size="md"
      lockScroll={false}
      trapFocus={false}
      closeOnClickOutside={false}
    >
      <Drawer.Content>
        <Drawer.Header role="presentation">
          <Drawer.Title>Inspector</Drawer.Title>
          <Drawer.CloseButton aria-label="Close the inspector" />
        </Drawer.Header>
        <Drawer.Body>
          <Stack gap="sm">
            <Group justify="space-between">
              <Text size="sm">{count} chunks and frames of the current message</Text>
              <Button
                size="compact-sm"
                variant="default"
                disabled={count === 0}
                onClick={() => download(log, chatId)}
              >
                Download
              </Button>
            </Group>
            {all.length > shown && (
              <Button
                size="compact-sm"
                variant="subtle"
                onClick={() => setShown(shown + PAGE_SIZE)}
              >
                Show earlier ones
              </Button>
            )}
            <Stack component="ul" gap={4} p={0} className="list" aria-label="Chunks and frames">
              {all.slice(-shown).map(({ entry, at }) => (
                <Row key={entry.seq} entry={entry} at={at} />
              ))}
            </Stack>
          </Stack>
        </Drawer.Body>
      </Drawer.Content>
    </Drawer.Root>
  );
}
