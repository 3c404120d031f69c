import { useMemo } from "react";
import type { Release } from "sluicegate";
import type { Option } from "./components/select.tsx";
import { useStoredText } from "./use-stored-text.ts";

export type Transport = "sse" | "websocket" | "bidi";

/** The transports, with their labels. */
export const TRANSPORTS: readonly Option<Transport>[] = [
  { value: "sse", label: "SSE" },
  { value: "websocket", label: "WebSocket" },
  { value: "bidi", label: "Voice" },
];

/** The release policies, with their labels. */
export const RELEASES: readonly Option<Release>[] = [
  { value: "progressive", label: "Progressive" },
  { value: "preview", label: "Preview" },
  { value: "deferred", label: "Deferred" },
];

function validOption<Value extends string>(
  options: readonly Option<Value>[],
  stored: string,
  fallback: Value,
): Value {
  return options.find(({ value }) => value === stored)?.value ?? fallback;
}

/**
 * The preferences of the person, stored in this browser for all chats. The rule of the page for
 * sending needs no held output, so text appears when it is produced and stays.
 */
export function usePreferences() {
  const [transport, setTransport] = useStoredText("sluicegate.transport", "sse");
  const [release, setRelease] = useStoredText("sluicegate.release", "progressive");
  return useMemo(
    () => ({
      transport: validOption(TRANSPORTS, transport, "sse"),
      release: validOption(RELEASES, release, "progressive"),
      setTransport: (value: Transport) => setTransport(value),
      setRelease: (value: Release) => setRelease(value),
    }),
    [transport, release, setTransport, setRelease],
  );
}

export type Preferences = ReturnType<typeof usePreferences>;
