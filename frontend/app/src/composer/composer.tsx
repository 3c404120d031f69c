import { AttachmentPrimitive, ComposerPrimitive, useAui } from "@assistant-ui/react";
import { ActionIcon, Badge, Box, CloseButton, Group, Paper, Stack, Textarea } from "@mantine/core";
import type { UIMessage } from "ai";
import { memo, useEffect } from "react";
import { textOf } from "../chat/message-runtime.ts";
import { Paperclip, Send, Stop } from "../components/icons.tsx";
import { visibleName } from "../components/visible-text.ts";
import type { VoiceSession } from "../voice/use-voice.ts";
import { VoiceButton, VoicePanel } from "../voice/voice-controls.tsx";

/** Whether focusing a text field does not open an on-screen keyboard. */
function hasHardwareKeyboard(): boolean {
  return matchMedia("(pointer: fine)").matches;
}

function Attachments() {
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

/** Restore the text of a refused message in the composer. */
function useRestoredDraft(unsent: UIMessage | undefined): void {
  const aui = useAui();
  useEffect(() => {
    if (unsent === undefined || aui.composer.getState().text !== "") return;
    aui.composer.setText(textOf(unsent));
  }, [aui, unsent]);
}

interface ComposerProps {
  readonly isBusy: boolean;
  readonly isStopping: boolean;
  /** Whether approvals are pending, which a new message supersedes. */
  readonly hasPending: boolean;
  /** The user message of a refused request. */
  readonly unsent: UIMessage | undefined;
  readonly voice: VoiceSession;
}

/** The message input, with attachments, voice, send and stop. */
export const Composer = memo(function Composer(props: ComposerProps) {
  const { isBusy, isStopping, hasPending, unsent, voice } = props;
  useRestoredDraft(unsent);
  return (
    <Box className="column composer">
      <VoicePanel voice={voice} />
      <ComposerPrimitive.AttachmentDropzone asChild>
        <Paper withBorder radius="lg" p="xs">
          <ComposerPrimitive.Root>
            <Stack gap={4}>
              <Group gap="xs">
                <Attachments />
              </Group>
              <ComposerPrimitive.Input asChild cancelOnEscape={false}>
                <Textarea
                  variant="unstyled"
                  aria-label="Message"
                  placeholder={
                    hasPending ? "Write a message (withdraws pending approvals)" : "Write a message"
                  }
                  autosize
                  autoFocus={hasHardwareKeyboard()}
                  minRows={1}
                  maxRows={8}
                  px="xs"
                />
              </ComposerPrimitive.Input>
              <Group justify="space-between">
                <ComposerPrimitive.AddAttachment asChild multiple>
                  <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Attach files">
                    <Paperclip />
                  </ActionIcon>
                </ComposerPrimitive.AddAttachment>
                <Group gap="xs">
                  <VoiceButton voice={voice} />
                  {isBusy ? (
                    <ComposerPrimitive.Cancel asChild>
                      <ActionIcon
                        variant="default"
                        radius="xl"
                        size="lg"
                        aria-label="Stop"
                        loading={isStopping}
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
    </Box>
  );
});
