import type { UIMessage } from "ai";
import { useEffect, useMemo, useState } from "react";
import type { SluiceChat } from "sluicegate/react";
import type { Preferences, Transport } from "../preferences.ts";

/** The transcript of current speech, until it becomes a message. */
export interface LiveTranscript {
  readonly role: "user" | "assistant";
  readonly text: string;
}

/** The voice session of the page. */
export interface VoiceSession {
  readonly controls: SluiceChat<UIMessage>["voice"];
  readonly transcript: LiveTranscript | undefined;
  /** Switch to the live transport and start the voice. */
  readonly start: () => void;
}

/**
 * The voice session. `start` switches to the live transport; any other transport ends the voice.
 */
export function useVoiceTransport(
  controls: SluiceChat<UIMessage>["voice"],
  preferences: Preferences,
  transcript: LiveTranscript | undefined,
): VoiceSession {
  // The transport to restore if the voice cannot start; undefined unless a start is requested.
  const [previous, setPrevious] = useState<Transport>();
  const { transport, setTransport } = preferences;
  const { start, status, stop } = controls;
  const isLive = transport === "bidi";
  useEffect(() => {
    if (previous === undefined || !isLive) return;
    setPrevious(undefined);
    // The error is part of the state of the voice.
    start().catch(() => setTransport(previous));
  }, [previous, isLive, setTransport, start]);
  useEffect(() => {
    if (!isLive && status !== "off") void stop();
  }, [isLive, status, stop]);
  return useMemo(() => {
    const startLive = () => {
      setPrevious(transport);
      setTransport("bidi");
    };
    return { controls, transcript, start: startLive };
  }, [controls, transcript, setTransport, transport]);
}
