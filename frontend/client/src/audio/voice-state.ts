/** The state of a `Voice`. */
export interface VoiceState {
  readonly status: "off" | "starting" | "on";
  readonly isMuted: boolean;
  /** Whether the connection is lost; the voice continues by itself when it is back. */
  readonly isReconnecting: boolean;
  /** Whether audio of the agent is being played. */
  readonly isSpeaking: boolean;
  /** The error that ended the session or prevented its start, or the last error of the server. */
  readonly error: Error | undefined;
}

/** The audio levels (RMS), from 0 to 1; subscribers are not notified of their changes. */
export interface Levels {
  readonly input: number;
  readonly output: number;
}

/** The state of a voice that was not started. */
export const OFF: VoiceState = {
  status: "off",
  isMuted: false,
  isReconnecting: false,
  isSpeaking: false,
  error: undefined,
};

export const SILENT: Levels = { input: 0, output: 0 };
