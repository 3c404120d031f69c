import type { UIMessage } from "ai";
import { type LiveTransport, Voice } from "../audio/voice.ts";
import type { SluiceChatOptions } from "./options.ts";
import { type SpokenChat, SpokenTurns } from "./spoken-turns.ts";

/** The chat of a voice. */
export interface VoiceChat<Message extends UIMessage> extends SpokenChat<Message> {
  readonly transport: () => LiveTransport;
  /** The options of the last rendering. */
  readonly options: () => SluiceChatOptions<Message>;
}

/** Create a voice whose spoken messages and answers are added to a chat. */
export function createChatVoice<Message extends UIMessage>(chat: VoiceChat<Message>): Voice {
  const spokenTurns = new SpokenTurns<Message>(chat);
  return new Voice({
    transport: chat.transport,
    worklets: () => chat.options().worklets,
    constraints: () => chat.options().microphone,
    onTurn: (turn) => void spokenTurns.addTurn(turn),
    onTranscript: (transcript) => {
      spokenTurns.addTranscript(transcript);
      chat.options().onTranscript?.(transcript);
    },
  });
}
