import { AttachmentPrimitive, ComposerPrimitive } from "@assistant-ui/react";
import { ActionIcon, Badge, CloseButton, Group, Paper, Stack, Textarea } from "@mantine/core";
import type { ReactNode } from "react";
import type { Conversation } from "../chat/conversation.ts";
import { Clip, Send, Stop } from "../shown/icons.tsx";
import { visibleName } from "../shown/visible-text.ts";
import { useReturnedDraft } from "./returned-draft.ts";

/** Where keys are pressed on the screen, the focus would bring them up over half the page. */
function hasKeyboard(): boolean {
  return matchMedia("(pointer: fine)").matches;
}

function Files() {
  return (
    <ComposerPrimitive.Attachments>
      {({ attachment }) => (
        <AttachmentPrimitive.Root asChild>
          <Badge
            size="lg"
            rightSection={
              <AttachmentPrimitive.Remove asChild>
                <CloseButton size="xs" aria-label={`Remove ${visibleName(attachment.name)}`} />
              </AttachmentPrimitive.Remove>
            }
          >
            {visibleName(attachment.name)}
          </Badge>
        </AttachmentPrimitive.Root>
      )}
    </ComposerPrimitive.Attachments>
  );
}

interface ComposerProps {
  readonly conversation: Conversation;
  /** What stands beside the other buttons: the way to speak. */
  readonly voice?: ReactNode;
}

/** Where the person writes, attaches files, sends and stops. */
export function Composer({ conversation, voice }: ComposerProps) {
  const { chat, isBusy, requests } = conversation;
  useReturnedDraft(chat.refusal?.unsent);
  return (
    <ComposerPrimitive.AttachmentDropzone asChild>
      <Paper withBorder radius="lg" p="xs" className="column composer">
        <ComposerPrimitive.Root>
          <Stack gap={4}>
            <Group gap="xs">
              <Files />
            </Group>
            <ComposerPrimitive.Input asChild cancelOnEscape={false}>
              <Textarea
                variant="unstyled"
                aria-label="Message"
                placeholder={
                  requests.length > 0 ? "Write instead (withdraws what waits)" : "Write a message"
                }
                autosize
                autoFocus={hasKeyboard()}
                minRows={1}
                maxRows={8}
                px="xs"
              />
            </ComposerPrimitive.Input>
            <Group justify="space-between">
              <ComposerPrimitive.AddAttachment asChild multiple>
                <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Attach files">
                  <Clip />
                </ActionIcon>
              </ComposerPrimitive.AddAttachment>
              <Group gap="xs">
                {voice}
                {isBusy ? (
                  <ComposerPrimitive.Cancel asChild>
                    <ActionIcon
                      variant="default"
                      radius="xl"
                      size="lg"
                      aria-label="Stop"
                      loading={chat.isStopping}
                    >
                      <Stop />
                    </ActionIcon>
                  </ComposerPrimitive.Cancel>
                ) : (
                  <ComposerPrimitive.Send asChild>
                    <ActionIcon radius="xl" size="lg" aria-label="Send">
                      <Send />
                    </ActionIcon>
                  </ComposerPrimitive.Send>
                )}
              </Group>
            </Group>
          </Stack>
        </ComposerPrimitive.Root>
      </Paper>
    </ComposerPrimitive.AttachmentDropzone>
  );
}
