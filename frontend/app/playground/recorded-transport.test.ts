import { Chat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { expect, test, vi } from "vitest";
import { RecordedTransport } from "./recorded-transport.ts";
import approved from "./recordings/approved.jsonl?raw";
import denied from "./recordings/denied.jsonl?raw";

interface ShownPart {
  readonly text?: string;
  readonly state?: string;
  readonly approval?: { readonly id: string };
}

function parts(chat: Chat<UIMessage>): readonly ShownPart[] {
  return chat.messages.at(-1)?.parts as readonly ShownPart[];
}

test.each([
  [true, undefined, "output-available", "Done: Ada has received 5 euros."],
  [false, "Not today.", "output-denied", "All right, nothing was paid."],
])("the recording of the decision %s is played", async (isApproved, reason, state, text) => {
  const chat = new Chat<UIMessage>({
    id: "payment",
    transport: new RecordedTransport(approved, denied),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  await chat.sendMessage({ text: "Pay Ada 5 euros" });
  const request = parts(chat).find((part) => part.state === "approval-requested");
  await chat.addToolApprovalResponse({
    id: request?.approval?.id ?? "",
    approved: isApproved,
    ...(reason !== undefined && { reason }),
  });
  await vi.waitFor(() => expect(parts(chat).at(-1)?.text).toContain(text), 30_000);

  expect(parts(chat).map((part) => part.state)).toContain(state);
  expect(chat.error).toBeUndefined();
});
