import { Button, Checkbox, Group, NativeSelect, Radio, Stack, Text } from "@mantine/core";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { Remember } from "sluicegate";
import { durationText } from "../components/duration.ts";
import { VisibleText } from "../components/values.tsx";
import { visibleJson, visibleName } from "../components/visible-text.ts";
import { type ApprovalRequest, isRecord, parseDescriptor } from "./approval-requests.ts";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const DURATIONS = [10 * MINUTE, HOUR, DAY, 7 * DAY];

/** Longer values are not repeated beside the name of their argument. */
const MAX_VALUE = 60;

type Scope = "values" | "tool";

interface RememberFormProps {
  readonly request: ApprovalRequest;
  readonly onApprove: (remember: Remember) => void;
  readonly onCancel: () => void;
}

/** The durations that can be chosen: the maximum and the usual ones below it. */
function durations(maximum: number): number[] {
  return [...DURATIONS.filter((duration) => duration < maximum), maximum];
}

function shortValue(value: unknown): string | undefined {
  const text = typeof value === "string" ? visibleName(value) : visibleJson(value);
  return text.length > MAX_VALUE ? undefined : text;
}

interface ChoiceProps {
  readonly args: Readonly<Record<string, unknown>>;
  readonly chosen: readonly string[];
  readonly onChange: (names: string[]) => void;
}

function ArgumentChoice({ args, chosen, onChange }: ChoiceProps) {
  return (
    <Checkbox.Group
      aria-label="Arguments whose values must be the same"
      value={[...chosen]}
      onChange={onChange}
    >
      <Stack gap={6}>
        {Object.entries(args).map(([name, value]) => (
          <Checkbox
            key={name}
            value={name}
            label={visibleName(name)}
            description={shortValue(value)}
          />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}

/** A form to approve a call and later calls of the same tool in this chat (A8). */
export function RememberForm({ request, onApprove, onCancel }: RememberFormProps) {
  const { grantTtl } = parseDescriptor(request.descriptor);
  const { agent } = request;
  const args = isRecord(request.input) ? request.input : {};
  const names = Object.keys(args);
  const [scope, setScope] = useState<Scope>(names.length > 0 ? "values" : "tool");
  const [chosen, setChosen] = useState<readonly string[]>(names);
  const [ttl, setTtl] = useState(grantTtl);
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => {
    form.current?.querySelector<HTMLElement>("input:checked")?.focus();
  }, []);

  const approve = () => {
    const where = scope === "values" ? chosen : undefined;
    const isDefault = where === undefined && ttl === grantTtl;
    onApprove(isDefault ? "chat" : { ...(where && { where }), ttl });
  };
  const cancelOnEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
  };
  const isIncomplete = scope === "values" && chosen.length === 0;
  return (
    <Stack
      ref={form}
      gap="sm"
      role="group"
      aria-label="Approve later calls too"
      onKeyDown={cancelOnEscape}
    >
      <Radio.Group
        label="Do not ask again in this chat"
        value={scope}
        onChange={(value) => setScope(value as Scope)}
      >
        <Stack gap={6} pt={6}>
          {names.length > 0 && <Radio value="values" label="Only with the same values of …" />}
          {scope === "values" && (
            <Stack pl="xl">
              <ArgumentChoice args={args} chosen={chosen} onChange={setChosen} />
            </Stack>
          )}
          <Radio value="tool" label="This tool with any values, for the rest of the chat" />
        </Stack>
      </Radio.Group>
      <NativeSelect
        label="Ask again after"
        data={durations(grantTtl).map((duration) => ({
          value: String(duration),
          label: durationText(duration),
        }))}
        value={String(ttl)}
        onChange={(event) => setTtl(Number(event.currentTarget.value))}
      />
      <Text size="sm">
        {isIncomplete ? (
          "Choose at least one argument."
        ) : (
          <>
            For {durationText(ttl)},{" "}
            {agent === undefined ? "the agent" : <VisibleText text={agent} />} can call{" "}
            <Text span inherit ff="monospace">
              <VisibleText text={request.toolName} />
            </Text>{" "}
            {scope === "tool" ? (
              "with any arguments"
            ) : (
              <>
                with the same <VisibleText text={chosen.join(", ")} />
              </>
            )}{" "}
            in this chat without asking. You can end this in the settings of the chat.
          </>
        )}
      </Text>
      <Group gap="xs">
        <Button disabled={isIncomplete} onClick={approve}>
          Approve and do not ask again
        </Button>
        <Button variant="default" onClick={onCancel}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}
