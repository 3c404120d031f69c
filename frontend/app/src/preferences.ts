import { useLocalStorage } from "@mantine/hooks";
import { useMemo } from "react";
import type { Release } from "sluicegate";

/** The transports, with their labels. */
export const TRANSPORTS = [
  { value: "sse", label: "SSE" },
  { value: "websocket", label: "WebSocket" },
  { value: "bidi", label: "Voice" },
] as const;

export type Transport = (typeof TRANSPORTS)[number]["value"];

/** The release policies, with their labels. */
export const RELEASES: readonly { readonly value: Release; readonly label: string }[] = [
  { value: "preview", label: "Preview" },
  { value: "deferred", label: "Deferred" },
  { value: "progressive", label: "Progressive" },
];

function validOption<Value extends string>(
  options: readonly { readonly value: Value }[],
  stored: string,
  fallback: Value,
): Value {
  return options.find(({ value }) => value === stored)?.value ?? fallback;
}

/** The preferences of the person, stored in this browser for all chats. */
export function usePreferences() {
  const [transport, setTransport] = useLocalStorage({
    key: "sluicegate.transport",
    defaultValue: "sse",
    getInitialValueInEffect: false,
  });
  const [release, setRelease] = useLocalStorage({
    key: "sluicegate.release",
    defaultValue: "preview",
    getInitialValueInEffect: false,
  });
  return useMemo(
    () => ({
      transport: validOption(TRANSPORTS, transport, "sse"),
      release: validOption(RELEASES, release, "preview"),
      setTransport: (value: Transport) => setTransport(value),
      setRelease: (value: Release) => setRelease(value),
    }),
    [transport, release, setTransport, setRelease],
  );
}

export type Preferences = ReturnType<typeof usePreferences>;
