import { ActionIcon } from "@mantine/core";
import { Microphone } from "../shown/icons.tsx";
import type { VoiceView } from "./use-voice.ts";

/** Begins a conversation by voice. */
export function VoiceButton({ voice }: { readonly voice: VoiceView }) {
  const { status } = voice.controls;
  if (status === "on") return null;
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label="Speak"
      loading={status === "starting"}
      onClick={voice.begin}
    >
      <Microphone />
    </ActionIcon>
  );
}
