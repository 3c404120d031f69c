import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import type { Remember } from "sluicegate";
import { Button } from "../components/button.tsx";
import { Checkbox } from "../components/checkbox.tsx";
import { durationText } from "../components/duration.ts";
import { GuardedButton } from "../components/guarded-button.tsx";
import { JsonValue } from "../components/json-value.tsx";
import { Radio } from "../components/radio.tsx";
import { moveFocus } from "../components/reflex-guard.ts";
import { Select } from "../components/select.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { isRecord } from "../is-record.ts";
import { momentText } from "../moment-text.ts";
import { visibleJson, visibleName } from "../text-checks/hidden-characters.ts";
import type { ApprovalRequest } from "./approval-requests.ts";
import { parseDescriptor } from "./descriptor.ts";

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

/** What a person has chosen to grant. */
interface GrantChoice {
  readonly request: ApprovalRequest;
  readonly scope: Scope;
  /** The arguments whose values must be the same, if the scope is their values. */
  readonly chosen: readonly string[];
  /** Seconds. */
  readonly ttl: number;
}

function Agent({ agent }: { readonly agent: string | undefined }) {
  return agent === undefined ? "the agent" : <VisibleText text={agent} />;
}

/** Names as a sentence has them: `a, b and c`. */
function enumeration(names: readonly string[]): string {
  return [names.slice(0, -1).join(", "), ...names.slice(-1)].filter(Boolean).join(" and ");
}

/** What a grant covers, in one sentence. */
function Summary({ request, scope, chosen, ttl }: GrantChoice) {
  return (
    <>
      For {durationText(ttl)}, <Agent agent={request.agent} /> can call{" "}
      <span className="mono">
        <VisibleText text={request.toolName} />
      </span>{" "}
      {scope === "tool" ? (
        "with any arguments"
      ) : (
        <>
          with the same <VisibleText text={enumeration(chosen)} />
        </>
      )}{" "}
      in this chat without asking. You can end this in the settings of the chat.
    </>
  );
}

interface RowProps {
  readonly name: string;
  readonly children: ReactNode;
}

function Row({ name, children }: RowProps) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{children}</td>
    </tr>
  );
}

/** The arguments that the tool has, also those that the call leaves out. */
function argumentNames({ descriptor, input }: ApprovalRequest): readonly string[] {
  const { defaults, schema } = parseDescriptor(descriptor);
  const properties = isRecord(schema?.properties) ? schema.properties : {};
  const args = isRecord(input) ? input : {};
  // The default of a nested argument has a path as its name.
  const omitted = Object.keys(defaults).filter((name) => !name.includes("."));
  return [...new Set([args, properties].flatMap(Object.keys).concat(omitted))];
}

interface ConfirmationProps {
  readonly choice: GrantChoice;
  readonly isSending: boolean;
  readonly onConfirm: () => void;
  readonly onBack: () => void;
}

/** The second step: the grant in words, and the button that gives it. */
function Confirmation({ choice, isSending, onConfirm, onBack }: ConfirmationProps) {
  const { request, scope, chosen, ttl } = choice;
  const args = isRecord(request.input) ? request.input : {};
  const others = argumentNames(request).filter((name) => !chosen.includes(name));
  const [until] = useState(() => momentText(Date.now() + ttl * 1000));
  const step = useRef<HTMLDivElement>(null);
  const title = useId();
  useEffect(() => {
    // A key that was meant for the step before is ignored.
    if (step.current !== null) moveFocus(step.current);
  }, []);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    <div ref={step} role="group" tabIndex={-1} aria-labelledby={title} className="stack">
      <p className="text-sm strong" id={title}>
        Approve this call, and these later ones without seeing them?
      </p>
      <table className="table field-table" aria-label="What you allow">
        <tbody>
          <Row name="Tool">
            <VisibleText text={request.toolName} />
          </Row>
          <Row name="Called by">
            <Agent agent={request.agent} />
          </Row>
          <Row name="With">
            {scope === "tool" ? (
              "any arguments"
            ) : (
              <ul className="plain-list">
                {chosen.map((name) => (
                  <li key={name}>
                    the same <VisibleText text={name} />: <JsonValue value={args[name]} />
                  </li>
                ))}
                {others.length > 0 && (
                  <li>
                    any <VisibleText text={enumeration(others)} />
                  </li>
                )}
              </ul>
            )}
          </Row>
          <Row name="Where">this chat</Row>
          <Row name="Until">
            {until} ({durationText(ttl)})
          </Row>
        </tbody>
      </table>
      <div className="row">
        <GuardedButton variant="primary" isLocked={isSending} onAccept={onConfirm}>
          Approve and do not ask again
        </GuardedButton>
        <Button onClick={onBack}>Back</Button>
      </div>
    </div>
  );
}

/** A form to approve a call and later calls of the same tool in this chat (A8), in two steps. */
export function RememberForm(props: RememberFormProps) {
  const { request, isSending, onApprove, onCancel } = props;
  const { grantTtl } = parseDescriptor(request.descriptor);
  const args = isRecord(request.input) ? request.input : {};
  const names = Object.keys(args);
  const [scope, setScope] = useState<Scope>(names.length > 0 ? "values" : "tool");
  const [chosen, setChosen] = useState<readonly string[]>(names);
  const [ttl, setTtl] = useState(grantTtl);
  const [isConfirming, setConfirming] = useState(false);
  const form = useRef<HTMLDivElement>(null);
  const group = useId();
  useEffect(() => {
    if (!isConfirming) form.current?.querySelector<HTMLElement>("input:checked")?.focus();
  }, [isConfirming]);

  const choice: GrantChoice = { request, scope, chosen, ttl };
  const approve = () => {
    const where = scope === "values" ? chosen : undefined;
    const isDefault = where === undefined && ttl === grantTtl;
    onApprove(isDefault ? "chat" : { ...(where && { where }), ttl });
  };
  const cancelOnEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
  };
  const isIncomplete = scope === "values" && chosen.length === 0;
  const steps = isConfirming ? (
    <Confirmation
      choice={choice}
      isSending={isSending}
      onConfirm={approve}
      onBack={() => setConfirming(false)}
    />
  ) : (
    <>
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
          label="This tool with any values"
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
        {isIncomplete ? "Choose at least one argument." : <Summary {...choice} />}
      </p>
      <div className="row">
        <Button
          variant="primary"
          aria-disabled={isIncomplete}
          onClick={() => setConfirming(!isIncomplete)}
        >
          Continue
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </>
  );
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    <div
      ref={form}
      className="stack"
      role="group"
      aria-label="Approve later calls too"
      onKeyDown={cancelOnEscape}
    >
      {steps}
    </div>
  );
}
