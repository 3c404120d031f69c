import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import type { Remember } from "sluicegate";
import { Button } from "../components/button.tsx";
import { Checkbox } from "../components/checkbox.tsx";
import { durationText } from "../components/duration.ts";
import { Radio } from "../components/radio.tsx";
import { Select } from "../components/select.tsx";
import { VisibleText } from "../components/values.tsx";
import { visibleJson, visibleName } from "../components/visible-text.ts";
import { AcceptButton } from "./accept-button.tsx";
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
  readonly isSending: boolean;
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
    <fieldset className="choice-group stack gap-2">
      <legend className="visually-hidden">Arguments whose values must be the same</legend>
      {Object.entries(args).map(([name, value]) => (
        <Checkbox
          key={name}
          label={visibleName(name)}
          description={shortValue(value)}
          isChecked={chosen.includes(name)}
          onChange={(isChecked) =>
            onChange(
              Object.keys(args).filter((other) =>
                other === name ? isChecked : chosen.includes(other),
              ),
            )
          }
        />
      ))}
    </fieldset>
  );
}

/** A form to approve a call and later calls of the same tool in this chat (A8). */
export function RememberForm(props: RememberFormProps) {
  const { request, isSending, onApprove, onCancel } = props;
  const { grantTtl } = parseDescriptor(request.descriptor);
  const { agent } = request;
  const args = isRecord(request.input) ? request.input : {};
  const names = Object.keys(args);
  const [scope, setScope] = useState<Scope>(names.length > 0 ? "values" : "tool");
  const [chosen, setChosen] = useState<readonly string[]>(names);
  const [ttl, setTtl] = useState(grantTtl);
  const form = useRef<HTMLDivElement>(null);
  const group = useId();
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
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    <div
      ref={form}
      className="stack"
      role="group"
      aria-label="Approve later calls too"
      onKeyDown={cancelOnEscape}
    >
      <fieldset className="choice-group stack gap-2">
        <legend>Do not ask again in this chat</legend>
        {names.length > 0 && (
          <Radio
            name={group}
            label="Only with the same values of …"
            isChecked={scope === "values"}
            onSelect={() => setScope("values")}
          />
        )}
        {scope === "values" && (
          <div className="nested-choice">
            <ArgumentChoice args={args} chosen={chosen} onChange={setChosen} />
          </div>
        )}
        <Radio
          name={group}
          label="This tool with any values, for the rest of the chat"
          isChecked={scope === "tool"}
          onSelect={() => setScope("tool")}
        />
      </fieldset>
      <Select
        label="Ask again after"
        options={durations(grantTtl).map((duration) => ({
          value: String(duration),
          label: durationText(duration),
        }))}
        value={String(ttl)}
        onChange={(value) => setTtl(Number(value))}
      />
      <p className="text-sm">
        {isIncomplete ? (
          "Choose at least one argument."
        ) : (
          <>
            For {durationText(ttl)},{" "}
            {agent === undefined ? "the agent" : <VisibleText text={agent} />} can call{" "}
            <span className="mono">
              <VisibleText text={request.toolName} />
            </span>{" "}
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
      </p>
      <div className="row">
        <AcceptButton variant="primary" isLocked={isIncomplete || isSending} onAccept={approve}>
          Approve and do not ask again
        </AcceptButton>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </div>
  );
}
