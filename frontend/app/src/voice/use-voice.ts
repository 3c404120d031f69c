import type { UIMessage } from "ai";
import { useEffect, useMemo, useState } from "react";
import type { SluiceChat } from "sluicegate/react";
import type { Choices, Transport } from "../choices.ts";

/** What was heard last and is not a message yet. */
export interface Heard {
  readonly role: "user" | "assistant";
  readonly text: string;
}

/** The conversation by voice as the page shows it. */
export interface VoiceView {
  readonly controls: SluiceChat<UIMessage>["voice"];
  readonly heard: Heard | undefined;
  /** Goes over to the transport that carries voice, and begins. */
  readonly begin: () => void;
}

/**
 * Begins to speak once the chat has gone over to the transport that carries voice, and falls
 * silent when it goes back.
 */
export function useVoice(
  controls: SluiceChat<UIMessage>["voice"],
  choices: Choices,
  heard: Heard | undefined,
): VoiceView {
  // The transport to go back to if nobody can be spoken to.
  const [before, setBefore] = useState<Transport>();
  const { transport, setTransport } = choices;
  const { start, status, stop } = controls;
  const isLive = transport === "bidi";
  useEffect(() => {
    if (before === undefined || !isLive) return;
    setBefore(undefined);
    // Why it could not begin stands in the state of the voice.
    start().catch(() => setTransport(before));
  }, [before, isLive, setTransport, start]);
  useEffect(() => {
    if (!isLive && status !== "off") void stop();
  }, [isLive, status, stop]);
  return useMemo(() => {
    const begin = () => {
      setBefore(transport);
      setTransport("bidi");
    };
    return { controls, heard, begin };
  }, [controls, heard, setTransport, transport]);
}
