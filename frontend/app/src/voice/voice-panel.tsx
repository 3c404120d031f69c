import { ActionIcon, Badge, Button, Group, Paper, Stack, Text } from "@mantine/core";
import { useCallback } from "react";
import { Microphone, Muted } from "../shown/icons.tsx";
import { LevelMeter } from "./level-meter.tsx";
import type { VoiceView } from "./use-voice.ts";

function words({ status, isMuted, isSpeaking }: VoiceView["controls"]): string {
  if (status === "starting") return "connecting";
  if (isSpeaking) return "the agent speaks";
  return isMuted ? "muted" : "listening";
}

/** A conversation by voice: who is heard, how loud, and how to be quiet. */
export function VoicePanel({ voice }: { readonly voice: VoiceView }) {
  const { controls, heard } = voice;
  const { interrupt, isMuted, isSpeaking, levels, mute, status, stop } = controls;
  const input = useCallback(() => levels().input, [levels]);
  const output = useCallback(() => levels().output, [levels]);
  if (status === "off") return null;
  return (
    <Paper component="section" withBorder radius="lg" p="sm" mb="xs" aria-label="Voice">
      <Stack gap="xs">
        <Group justify="space-between" gap="xs">
          <Badge role="status">{words(controls)}</Badge>
          <Group gap="xs">
            <Button
              size="compact-sm"
              variant="default"
              disabled={!isSpeaking}
              onClick={() => interrupt()}
            >
              Interrupt
            </Button>
            <ActionIcon
              variant="default"
              aria-label="Mute"
              aria-pressed={isMuted}
              onClick={() => mute(!isMuted)}
            >
              {isMuted ? <Muted size={16} /> : <Microphone size={16} />}
            </ActionIcon>
            <Button size="compact-sm" variant="default" onClick={() => void stop()}>
              Hang up
            </Button>
          </Group>
        </Group>
        <Group gap="xs" wrap="nowrap" aria-hidden="true">
          <Text size="xs" c="dimmed">
            You
          </Text>
          <LevelMeter level={input} />
          <Text size="xs" c="dimmed">
            Agent
          </Text>
          <LevelMeter level={output} />
        </Group>
        {heard !== undefined && (
          <Text size="sm" className="as-written" lineClamp={3}>
            {heard.role === "user" ? "You: " : "Agent: "}
            {heard.text}
          </Text>
        )}
      </Stack>
    </Paper>
  );
}
