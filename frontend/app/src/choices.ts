import { useLocalStorage } from "@mantine/hooks";
import { useMemo } from "react";
import type { Release } from "sluicegate";

/** How the page reaches the server. */
export const TRANSPORTS = [
  { value: "sse", label: "SSE" },
  { value: "websocket", label: "WebSocket" },
  { value: "bidi", label: "Voice" },
] as const;

export type Transport = (typeof TRANSPORTS)[number]["value"];

/** When texts and results are shown while approvals wait. */
export const RELEASES: readonly { readonly value: Release; readonly label: string }[] = [
  { value: "preview", label: "Preview" },
  { value: "deferred", label: "Deferred" },
  { value: "progressive", label: "Progressive" },
];

function known<Value extends string>(
  options: readonly { readonly value: Value }[],
  stored: string,
  otherwise: Value,
): Value {
  return options.find(({ value }) => value === stored)?.value ?? otherwise;
}

/** The person's choices; they hold for every chat of this browser. */
export function useChoices() {
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
      transport: known(TRANSPORTS, transport, "sse"),
      release: known(RELEASES, release, "preview"),
      setTransport: (value: Transport) => setTransport(value),
      setRelease: (value: Release) => setRelease(value),
    }),
    [transport, release, setTransport, setRelease],
  );
}

export type Choices = ReturnType<typeof useChoices>;
