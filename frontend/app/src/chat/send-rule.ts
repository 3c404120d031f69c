import { type MessagePart, type SendRule, sendAutomaticallyWhen } from "sluicegate";
import { CLIENT_TOOLS } from "./get-location-tool.ts";

const isNewOutput = sendAutomaticallyWhen({ clientTools: Object.keys(CLIENT_TOOLS) });

/** A part without its decision, which reaches the server by a request of its own. */
function withoutDecision(part: MessagePart): MessagePart {
  return part.state === "approval-responded" ? { ...part, state: "input-available" } : part;
}

/** The page's rule for sending: the messages are sent for outputs of client-side calls only. */
export const sendRule: SendRule = ({ messages }) =>
  isNewOutput({
    messages: messages.map((message) => ({
      ...message,
      parts: message.parts.map(withoutDecision),
    })),
  });
