import "./developer-drawer.css";
import { useEffect, useState } from "react";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { Disclosure } from "../components/disclosure.tsx";
import { Drawer } from "../components/drawer.tsx";
import { JsonValue } from "../components/json-value.tsx";
import { Radio } from "../components/radio.tsx";
import { Select } from "../components/select.tsx";
import { type Preferences, RELEASES, TRANSPORTS } from "../preferences.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
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
    <li className="entry">
      <Disclosure
        label={
          <>
            <code>{`${(at / 1000).toFixed(3)} s`}</code>
            <Badge>{entry.dir === "client" ? "sent" : "received"}</Badge>
            {entryName(entry)}
          </>
        }
      >
        <JsonValue value={entry.body} />
      </Disclosure>
    </li>
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
}

/** The requests, chunks and frames of the current exchange since the drawer is open. */
function Inspector({ log, chatId }: InspectorProps) {
  const count = useCount(log);
  const [shown, setShown] = useState(PAGE_SIZE);
  const all = withTime(log.entries);
  return (
    <section className="stack" aria-label="Inspector">
      <h3 className="text-sm">Inspector</h3>
      <div className="row between">
        <p className="text-sm dim">{count} chunks and frames of the current message</p>
        <Button size="sm" disabled={count === 0} onClick={() => download(log, chatId)}>
          Download
        </Button>
      </div>
      {all.length > shown && (
        <Button size="sm" variant="subtle" onClick={() => setShown(shown + PAGE_SIZE)}>
          Show earlier ones
        </Button>
      )}
      <ul className="plain-list stack gap-1" aria-label="Chunks and frames">
        {all.slice(-shown).map(({ entry, at }) => (
          <Row key={entry.seq} entry={entry} at={at} />
        ))}
      </ul>
    </section>
  );
}

function TransportChoice({ preferences }: { readonly preferences: Preferences }) {
  return (
    <fieldset className="choice-group row">
      <legend>Transport</legend>
      {TRANSPORTS.map(({ value, label }) => (
        <Radio
          key={value}
          name="transport"
          label={label}
          isChecked={preferences.transport === value}
          onSelect={() => preferences.setTransport(value)}
        />
      ))}
    </fieldset>
  );
}

interface DeveloperDrawerProps extends InspectorProps {
  readonly preferences: Preferences;
  readonly onClose: () => void;
}

/** The transport, the release policy, and what is sent and received. */
export function DeveloperDrawer(props: DeveloperDrawerProps) {
  const { preferences, log, chatId, onClose } = props;
  return (
    <Drawer title="Developer tools" closeLabel="Close the developer tools" onClose={onClose}>
      <div className="stack gap-5">
        <TransportChoice preferences={preferences} />
        <Select
          label="Release"
          options={RELEASES}
          value={preferences.release}
          onChange={preferences.setRelease}
        />
        <Inspector log={log} chatId={chatId} />
      </div>
    </Drawer>
  );
}
