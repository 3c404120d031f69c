import { type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Button } from "../components/button.tsx";
import { visibleName } from "../components/visible-text.ts";
import { AcceptButton } from "./accept-button.tsx";
import { EditControl, EditFormContext } from "./edit-controls.tsx";
import { editFields } from "./edit-fields.ts";
import { parseFields } from "./parse-fields.ts";

interface EditFormProps {
  readonly label?: string;
  readonly schema: Record<string, unknown> | undefined;
  readonly input: unknown;
  /** The values of omitted arguments. */
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly isSending: boolean;
  readonly onApprove: (edit: Record<string, unknown>) => void;
  readonly onCancel: () => void;
}

const CONTROLS = "input, select, textarea";
const NO_ERRORS: ReadonlyMap<string, string> = new Map();

/** The first control of an element, else its first button. */
function controlOf(element: HTMLElement | undefined): HTMLElement | null {
  return element?.querySelector<HTMLElement>(CONTROLS) ?? element?.querySelector("button") ?? null;
}

function fieldOf(form: HTMLElement, id: string): HTMLElement | undefined {
  const fields = [...form.querySelectorAll<HTMLElement>("[data-field]")];
  return fields.find(({ dataset }) => dataset.field === id);
}

/** A form to approve a call with other arguments than the requested ones (A7). */
export function EditForm(props: EditFormProps) {
  const { label = "Edit the arguments", schema, input, defaults, isSending, onCancel } = props;
  const [context] = useState(() => ({ root: schema ?? {}, defaults }));
  const [fields, setFields] = useState(() => editFields(context, input));
  const [errors, setErrors] = useState(NO_ERRORS);

  const form = useRef<HTMLDivElement>(null);
  const toFocus = useRef<(form: HTMLElement) => HTMLElement | null>(undefined);
  useEffect(() => {
    controlOf(form.current ?? undefined)?.focus();
  }, []);
  // An effect of an earlier render may run after `toFocus` was set; a layout effect does not.
  useLayoutEffect(() => {
    if (form.current !== null) toFocus.current?.(form.current)?.focus();
    toFocus.current = undefined;
  });

  const approve = () => {
    const parsed = parseFields(fields, input);
    if ("values" in parsed) return props.onApprove(parsed.values);
    toFocus.current = (element) => element.querySelector("[aria-invalid=true]");
    setErrors(parsed.errors);
  };
  const cancelOnEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
  };
  const state = useMemo(() => {
    const focusField = (id: string) => {
      toFocus.current = (element) => controlOf(fieldOf(element, id));
    };
    return { context, errors, focusField };
  }, [context, errors]);

  return (
    <EditFormContext value={state}>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content. */}
      <div ref={form} className="stack" role="group" aria-label={label} onKeyDown={cancelOnEscape}>
        {fields.map((field, index) => (
          <EditControl
            key={field.id}
            field={field}
            label={visibleName(field.name)}
            onChange={(next) => setFields(fields.with(index, next))}
          />
        ))}
        <div className="row">
          <AcceptButton variant="primary" isLocked={isSending} onAccept={approve}>
            Approve with changes
          </AcceptButton>
          <Button onClick={onCancel}>Cancel</Button>
        </div>
      </div>
    </EditFormContext>
  );
}
