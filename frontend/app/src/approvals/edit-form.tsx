import {
  type KeyboardEvent,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Button } from "../components/button.tsx";
import { GuardedButton } from "../components/guarded-button.tsx";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { EditControl, EditFormContext } from "./edit-controls.tsx";
import { type EditContext, type EditField, editFields } from "./edit-fields.ts";
import { parseFields } from "./parse-fields.ts";

/** Values that a form edits together, such as the arguments of a call or the payload of its request. */
export interface EditSection {
  readonly label: string;
  readonly schema: Record<string, unknown> | undefined;
  readonly input: unknown;
  /** The values of omitted arguments. */
  readonly defaults: Readonly<Record<string, unknown>>;
}

interface EditFormProps {
  readonly sections: readonly EditSection[];
  readonly isSending: boolean;
  /** The label of the button that sends the values. */
  readonly submitLabel?: string;
  /** Called with the values of each section. */
  readonly onApprove: (values: readonly Record<string, unknown>[]) => void;
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

interface SectionFieldsProps {
  /** The name of the section, if the form has others. */
  readonly label: string | undefined;
  readonly context: EditContext;
  readonly fields: readonly EditField[];
  readonly errors: ReadonlyMap<string, string>;
  readonly focusField: (id: string) => void;
  readonly onChange: (fields: readonly EditField[]) => void;
}

function SectionFields(props: SectionFieldsProps) {
  const { label, context, fields, errors, focusField, onChange } = props;
  const state = useMemo(() => ({ context, errors, focusField }), [context, errors, focusField]);
  return (
    <EditFormContext value={state}>
      <div className="stack" {...(label !== undefined && { role: "group", "aria-label": label })}>
        {fields.map((field, index) => (
          <EditControl
            key={field.id}
            field={field}
            label={visibleName(field.name)}
            onChange={(next) => onChange(fields.with(index, next))}
          />
        ))}
      </div>
    </EditFormContext>
  );
}

/** A form for sections of values; it calls back with the values of all of them once they are valid. */
export function EditForm(props: EditFormProps) {
  const { sections, isSending, submitLabel = "Approve with changes", onApprove, onCancel } = props;
  const [contexts] = useState(() =>
    sections.map(({ schema, defaults }) => ({ root: schema ?? {}, defaults })),
  );
  const [fields, setFields] = useState(() =>
    sections.map(({ input }, index) =>
      editFields(contexts[index] as EditContext, input, String(index)),
    ),
  );
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
  const focusField = useCallback((id: string) => {
    toFocus.current = (element) => controlOf(fieldOf(element, id));
  }, []);

  const approve = () => {
    const parsed = sections.map(({ input }, index) => parseFields(fields[index] ?? [], input));
    const invalid = parsed.flatMap((each) => ("errors" in each ? [...each.errors] : []));
    if (invalid.length === 0) {
      return onApprove(parsed.flatMap((each) => ("values" in each ? [each.values] : [])));
    }
    toFocus.current = (element) => element.querySelector("[aria-invalid=true]");
    setErrors(new Map(invalid));
  };
  const cancelOnEscape = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
  };

  const [first, second] = sections;
  const label = second === undefined ? first?.label : "Edit";
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    <div ref={form} className="stack" role="group" aria-label={label} onKeyDown={cancelOnEscape}>
      {sections.map((section, index) => (
        <SectionFields
          key={section.label}
          label={second && section.label}
          context={contexts[index] as EditContext}
          fields={fields[index] ?? []}
          errors={errors}
          focusField={focusField}
          onChange={(next) => setFields((before) => before.with(index, next))}
        />
      ))}
      <div className="row">
        <GuardedButton variant="primary" isLocked={isSending} onAccept={approve}>
          {submitLabel}
        </GuardedButton>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </div>
  );
}
