/**
 * A voice session with microphone and loudspeaker.
 * @module sluicegate/voice
 */

export {
  type LiveTransport,
  type SpokenTurn,
  Voice,
  type VoiceOptions,
  type Worklets,
} from "./voice.ts";
export type { Levels, VoiceState } from "./voice-state.ts";
