import { Badge, Box, Button, Code, Drawer, Group, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { Folded } from "../shown/folded.tsx";
import { JsonValue } from "../shown/json-value.tsx";
import { visibleName } from "../shown/visible-text.ts";
import type { Entry, WireLog } from "./log.ts";

const DRAWN_EVERY = 250;
const SHOWN = 200;

/** How many entries there are, looked at often enough to follow and seldom enough to be free. */
function useCount(log: WireLog): number {
  const [count, setCount] = useState(log.count);
  useEffect(() => {
    setCount(log.count());
    const timer = setInterval(() => setCount(log.count()), DRAWN_EVERY);
    return () => clearInterval(timer);
  }, [log]);
  return count;
}

function nameOf({ body, kind }: Entry): string {
  return visibleName("type" in body ? String(body.type) : kind);
}

function Row({ entry, at }: { readonly entry: Entry; readonly at: number }) {
  return (
    <Box component="li" className="entry">
      <Folded
        label={
          <Group component="span" gap="xs">
            <Code>{`${(at / 1000).toFixed(3)} s`}</Code>
            <Badge size="sm">{entry.dir === "client" ? "sent" : "received"}</Badge>
            <Text span size="sm">
              {nameOf(entry)}
            </Text>
          </Group>
        }
      >
        <JsonValue value={entry.body} />
      </Folded>
    </Box>
  );
}

function download(log: WireLog, chatId: string) {
  const address = URL.createObjectURL(
    new Blob([log.recording(chatId)], { type: "application/jsonl" }),
  );
  const link = document.createElement("a");
  link.href = address;
  link.download = `${chatId}.jsonl`;
  link.click();
  URL.revokeObjectURL(address);
}

/** Every entry with the milliseconds from the first to it. */
function timed(entries: readonly Entry[]): { entry: Entry; at: number }[] {
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

/** What went over the wire for the current message, piece by piece. */
export function Inspector({ log, chatId, onClose }: InspectorProps) {
  const count = useCount(log);
  const [shown, setShown] = useState(SHOWN);
  const all = timed(log.entries);
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
              <Button size="compact-sm" variant="subtle" onClick={() => setShown(shown + SHOWN)}>
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
