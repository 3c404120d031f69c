import { Anchor, Button, Group, Paper, Stack, Text, Textarea } from "@mantine/core";
import { useCallback, useState } from "react";
import { isRecord } from "../approvals/request.ts";
import { useAround } from "../chat/context.ts";
import { safeLink } from "../markdown/own-files.ts";
import { Fields } from "../shown/fields.tsx";
import { Visible } from "../shown/visible.tsx";
import { visibleName } from "../shown/visible-text.ts";
import { type ToolPart, toolName } from "./tool-states.ts";
import { useConsent } from "./use-consent.ts";

const CREDENTIAL = "adk_request_credential";
const INPUT = "adk_request_input";

/** Where a person gives the consent that an agent needs, if that is what is asked. */
function consentAddress(part: ToolPart): string | undefined {
  const isNamed = isRecord(part.input) && typeof part.input.authUri === "string";
  return isNamed ? safeLink(String((part.input as { authUri: unknown }).authUri)) : undefined;
}

function titleOf(part: ToolPart): string {
  const name = toolName(part);
  if (name === CREDENTIAL) return "The agent needs your consent at another site";
  return name === INPUT ? "The agent asks you" : (part.title ?? name);
}

/** A question that neither the server nor the page can answer by itself. */
export function PageQuestion({ part }: { readonly part: ToolPart }) {
  const { answer } = useAround();
  const [text, setText] = useState("");
  const isConsent = toolName(part) === CREDENTIAL;
  const address = consentAddress(part);
  const title = titleOf(part);
  const comeBack = useCallback(
    (url: string) => answer(part, { authResponseUri: url }),
    [answer, part],
  );
  useConsent(isConsent ? address : undefined, comeBack);
  const give = () => answer(part, isConsent ? { authResponseUri: text.trim() } : { result: text });
  return (
    <Paper component="section" withBorder p="md" aria-label={`Question: ${visibleName(title)}`}>
      <Stack gap="sm">
        <Text fw={600}>
          <Visible text={title} />
        </Text>
        {address === undefined ? (
          <Fields value={part.input} label="Question" />
        ) : (
          <Anchor href={address} target="_blank" rel="noopener noreferrer" className="as-written">
            {address}
          </Anchor>
        )}
        <Textarea
          label={isConsent ? "The address you were sent to afterwards" : "Your answer"}
          autosize
          maxRows={8}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <Group gap="xs">
          <Button disabled={text.trim() === ""} onClick={give}>
            Answer
          </Button>
          <Button
            variant="default"
            onClick={() => answer(part, new Error("The user did not want to answer."))}
          >
            Refuse
          </Button>
        </Group>
      </Stack>
    </Paper>
  );
}
