import { AttachmentPrimitive, ComposerPrimitive } from "@assistant-ui/react";
import { ActionIcon, Badge, Box, CloseButton, Group, Paper, Stack, Textarea } from "@mantine/core";
import type { UIMessage } from "ai";
import { memo } from "react";
import { Clip, Send, Stop } from "../shown/icons.tsx";
import { visibleName } from "../shown/visible-text.ts";
import type { VoiceView } from "../voice/use-voice.ts";
import { VoiceButton } from "../voice/voice-button.tsx";
import { VoicePanel } from "../voice/voice-panel.tsx";
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
  readonly isBusy: boolean;
  readonly isStopping: boolean;
  /** Whether something waits for the person, which a new message withdraws. */
  readonly isWaiting: boolean;
  /** A message that the server did not take. */
  readonly unsent: UIMessage | undefined;
  readonly voice: VoiceView;
}

/** Where the person writes, attaches files, sends and stops. */
export const Composer = memo(function Composer(props: ComposerProps) {
  const { isBusy, isStopping, isWaiting, unsent, voice } = props;
  useReturnedDraft(unsent);
  return (
    <Box className="column composer">
      <VoicePanel voice={voice} />
      <ComposerPrimitive.AttachmentDropzone asChild>
        <Paper withBorder radius="lg" p="xs">
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
                    isWaiting ? "Write instead (withdraws what waits)" : "Write a message"
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
