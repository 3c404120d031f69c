import { ActionIcon, Badge, Button, Group, Paper, Progress, Stack, Text } from "@mantine/core";
import { useCallback, useEffect, useRef } from "react";
import { Microphone, Muted } from "../components/icons.tsx";
import type { VoiceSession } from "./use-voice.ts";

/** A button that starts the voice session. */
export function VoiceButton({ voice }: { readonly voice: VoiceSession }) {
  const { status } = voice.controls;
  if (status === "on") return null;
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label="Speak"
      loading={status === "starting"}
      onClick={voice.start}
    >
      <Microphone />
    </ActionIcon>
  );
}

interface LevelMeterProps {
  /** Returns the level, from 0 to 1. */
  readonly level: () => number;
}

/** A level meter, updated in each animation frame without a rendering. */
function LevelMeter({ level }: LevelMeterProps) {
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let frame = 0;
    const update = () => {
      // The square root makes quiet speech visible.
      if (bar.current) bar.current.style.width = `${Math.min(1, Math.sqrt(level())) * 100}%`;
      frame = requestAnimationFrame(update);
    };
    frame = requestAnimationFrame(update);
    return () => cancelAnimationFrame(frame);
  }, [level]);
  return (
    <Progress.Root size="sm" className="grow" transitionDuration={0}>
      <Progress.Section value={0} ref={bar} withAria={false} />
    </Progress.Root>
  );
}

function statusLabel({ status, isMuted, isSpeaking }: VoiceSession["controls"]): string {
  if (status === "starting") return "connecting";
  if (isSpeaking) return "the agent speaks";
  return isMuted ? "muted" : "listening";
}

/** The controls of a voice session: status, levels, interrupt, mute and hang up. */
export function VoicePanel({ voice }: { readonly voice: VoiceSession }) {
  const { controls, transcript } = voice;
  const { interrupt, isMuted, isSpeaking, levels, mute, status, stop } = controls;
  const input = useCallback(() => levels().input, [levels]);
  const output = useCallback(() => levels().output, [levels]);
  if (status === "off") return null;
  return (
    <Paper component="section" withBorder radius="lg" p="sm" mb="xs" aria-label="Voice">
      <Stack gap="xs">
        <Group justify="space-between" gap="xs">
          <Badge role="status">{statusLabel(controls)}</Badge>
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
        {transcript !== undefined && (
          <Text size="sm" className="literal" lineClamp={3}>
            {transcript.role === "user" ? "You: " : "Agent: "}
            {transcript.text}
          </Text>
        )}
      </Stack>
    </Paper>
  );
}
