import "./voice-controls.css";
import { Mic, MicOff } from "lucide-react";
import { useCallback, useEffect, useRef } from "react";
import { Badge } from "../components/badge.tsx";
import { Button, IconButton } from "../components/button.tsx";
import type { VoiceSession } from "./use-voice-transport.ts";

/** A button that starts the voice session. */
export function VoiceButton({ voice }: { readonly voice: VoiceSession }) {
  const { status } = voice.controls;
  if (status === "on") return null;
  return (
    <IconButton label="Speak" isLoading={status === "starting"} onClick={voice.start}>
      <Mic size={18} />
    </IconButton>
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
    <div className="level-meter">
      <div ref={bar} />
    </div>
  );
}

function statusLabel(controls: VoiceSession["controls"], hasPending: boolean): string {
  const { status, isMuted, isReconnecting, isSpeaking } = controls;
  if (status === "starting") return "connecting";
  if (isReconnecting) return "reconnecting";
  if (isSpeaking) return "the agent speaks";
  const listening = isMuted ? "muted" : "listening";
  return hasPending ? `${listening}, waits for your approval` : listening;
}

interface VoicePanelProps {
  readonly voice: VoiceSession;
  /** Whether an approval waits for the person. */
  readonly hasPending: boolean;
}

/** The controls of a voice session: status, levels, interrupt, mute and hang up. */
export function VoicePanel({ voice, hasPending }: VoicePanelProps) {
  const { controls, transcript } = voice;
  const { interrupt, isMuted, isSpeaking, levels, mute, status, stop } = controls;
  const input = useCallback(() => levels().input, [levels]);
  const output = useCallback(() => levels().output, [levels]);
  if (status === "off") return null;
  return (
    <section className="voice-panel stack gap-2" aria-label="Voice">
      <div className="row between">
        <Badge role="status" tone="accent">
          {statusLabel(controls, hasPending)}
        </Badge>
        <div className="row">
          <Button size="sm" disabled={!isSpeaking} onClick={() => interrupt()}>
            Interrupt
          </Button>
          <IconButton
            label="Mute"
            size="sm"
            variant="default"
            aria-pressed={isMuted}
            onClick={() => mute(!isMuted)}
          >
            {isMuted ? <MicOff size={16} /> : <Mic size={16} />}
          </IconButton>
          <Button size="sm" onClick={() => void stop()}>
            Hang up
          </Button>
        </div>
      </div>
      <div className="row nowrap text-xs dim" aria-hidden="true">
        You
        <LevelMeter level={input} />
        Agent
        <LevelMeter level={output} />
      </div>
      {transcript !== undefined && (
        <p className="text-sm literal clamped">
          {transcript.role === "user" ? "You: " : "Agent: "}
          {transcript.text}
        </p>
      )}
    </section>
  );
}
