import "./edit-form.css";
import { createContext, type ReactNode, use, useId } from "react";
import { Button } from "../components/button.tsx";
import { jsonText } from "../components/canonical-number.ts";
import { Checkbox } from "../components/checkbox.tsx";
import { Select } from "../components/select.tsx";
import { TextArea } from "../components/text-area.tsx";
import { TextField } from "../components/text-field.tsx";
import { textFindings } from "../text-checks/findings.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { dateInWords } from "./date-arguments.ts";
import {
  clearedContent,
  defaultOf,
  type EditContext,
  type EditField,
  isChanged,
  optionsOf,
  optionText,
  withItem,
  withValue,
} from "./edit-fields.ts";
import { descriptionOf } from "./edit-shapes.ts";

/** What all controls of a form share. */
interface EditFormState {
  readonly context: EditContext;
  /** What is wrong in the fields, by id. */
  readonly errors: ReadonlyMap<string, string>;
  /** Focus the first control of a field after it was rendered. */
  readonly focusField: (id: string) => void;
}

/** Provided by the form around its controls. */
export const EditFormContext = createContext<EditFormState>({
  context: { root: {}, defaults: {} },
  errors: new Map(),
  focusField: () => {},
});

interface ControlProps {
  readonly field: EditField;
  readonly label: string;
  readonly onChange: (field: EditField) => void;
  /** A button beside the label, such as the one that removes an item. */
  readonly action?: ReactNode;
}

function valueText(value: unknown): string {
  if (value === "") return "an empty text";
  return typeof value === "string" ? visibleName(value) : visibleName(jsonText(value));
}

/** What the call has in place of a changed field. */
function changeText(field: EditField): string | undefined {
  const { original, isRequired } = field;
  if (!isChanged(field)) return undefined;
  if (original === undefined) return isRequired ? undefined : "Changed; the agent left it out.";
  return `Changed; the agent asked for ${original === null ? "nothing" : valueText(original)}.`;
}

function textsOf(field: EditField, { root }: EditContext): string | undefined {
  const { schema, content } = field;
  const text = content.kind === "text" ? content.text : "";
  const findings = textFindings(text);
  if (findings.length > 0) return findings.join(" ");
  const description = descriptionOf(schema, root);
  const sentences = [description && visibleName(description), dateInWords(text), changeText(field)];
  return sentences.filter(Boolean).join(" ") || undefined;
}

/** The button that leaves a field out, or sets it to null. */
function ClearButton({ field, label, onChange }: ControlProps) {
  const { focusField } = use(EditFormContext);
  const content = clearedContent(field);
  if (content === undefined) return null;
  const name = content.kind === "null" ? "Set to nothing" : "Leave out";
  const clear = () => {
    focusField(field.id);
    onChange({ ...field, content });
  };
  return (
    <Button size="sm" variant="subtle" aria-label={`${name}: ${label}`} onClick={clear}>
      {name}
    </Button>
  );
}

function LeafControl({ field, label, onChange, action }: ControlProps) {
  const { context, errors } = use(EditFormContext);
  const { shape, original, id } = field;
  const text = field.content.kind === "text" ? field.content.text : "";
  const setText = (next: string) => onChange({ ...field, content: { kind: "text", text: next } });
  const description = textsOf(field, context);
  const props = { label, description, error: errors.get(id), action, value: text };
  switch (shape.kind) {
    case "boolean":
      return (
        <div className="field-head">
          <Checkbox
            label={label}
            description={description}
            isChecked={text === "true"}
            onChange={(isChecked) => setText(String(isChecked))}
          />
          {action}
        </div>
      );
    case "choice": {
      const options = optionsOf(shape.options, original);
      const texts = options.map((option) => optionText(option, options));
      const all = texts.includes(text) ? texts : ["", ...texts];
      const labels = all.map((value) => ({ value, label: visibleName(value) }));
      return <Select {...props} options={labels} onChange={setText} />;
    }
    case "date":
      return <TextField {...props} type="date" onChange={setText} />;
    case "date-time":
      return <TextField {...props} onChange={setText} />;
    case "number":
    case "integer":
      return <TextField {...props} inputMode="decimal" onChange={setText} />;
    default:
      return <TextArea {...props} isMonospace={shape.kind === "json"} onChange={setText} />;
  }
}

interface GroupProps {
  readonly field: EditField;
  readonly label: string;
  readonly action: ReactNode;
  readonly children: ReactNode;
}

/** The parts of a list or an object below its name. */
function FieldGroup({ field, label, action, children }: GroupProps) {
  const { context } = use(EditFormContext);
  const id = useId();
  const description = textsOf(field, context);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not shrink below its content.
    <div
      className="field"
      role="group"
      aria-labelledby={id}
      {...(description !== undefined && { "aria-describedby": `${id}-description` })}
    >
      <div className="field-head">
        <span className="field-label" id={id}>
          {label}
        </span>
        {action}
      </div>
      {description !== undefined && (
        <span className="field-description" id={`${id}-description`}>
          {description}
        </span>
      )}
      <div className="field-group stack gap-2">{children}</div>
    </div>
  );
}

function ObjectControl({ field, label, onChange, action }: ControlProps) {
  const { content } = field;
  if (content.kind !== "object") return null;
  const { fields } = content;
  return (
    <FieldGroup field={field} label={label} action={action}>
      {fields.length === 0 && <p className="text-sm dim">No fields</p>}
      {fields.map((part, index) => (
        <EditControl
          key={part.id}
          field={part}
          label={visibleName(part.name)}
          onChange={(next) =>
            onChange({ ...field, content: { kind: "object", fields: fields.with(index, next) } })
          }
        />
      ))}
    </FieldGroup>
  );
}

function ListControl({ field, label, onChange, action }: ControlProps) {
  const { context, focusField } = use(EditFormContext);
  const { content } = field;
  if (content.kind !== "list") return null;
  const { items } = content;
  const setItems = (next: readonly EditField[]) =>
    onChange({ ...field, content: { ...content, items: next } });
  const add = () => {
    focusField(`${field.id}/${content.nextKey}`);
    onChange(withItem(context, field));
  };
  const remove = (index: number) => {
    const rest = items.toSpliced(index, 1);
    focusField((rest[index] ?? rest.at(-1) ?? field).id);
    setItems(rest);
  };
  return (
    <FieldGroup field={field} label={label} action={action}>
      {items.length === 0 && <p className="text-sm dim">No items</p>}
      {items.map((item, index) => {
        const itemLabel = `${label} ${index + 1}`;
        return (
          <EditControl
            key={item.id}
            field={item}
            label={itemLabel}
            onChange={(next) => setItems(items.with(index, next))}
            action={
              <Button
                size="sm"
                variant="subtle"
                aria-label={`Remove: ${itemLabel}`}
                onClick={() => remove(index)}
              >
                Remove
              </Button>
            }
          />
        );
      })}
      <div>
        <Button size="sm" aria-label={`Add an item: ${label}`} onClick={add}>
          Add an item
        </Button>
      </div>
    </FieldGroup>
  );
}

/** A field that is left out or null. */
function EmptyControl({ field, label, onChange, action }: ControlProps) {
  const { context, focusField } = use(EditFormContext);
  const isNull = field.content.kind === "null";
  const value = defaultOf(context, field);
  const state = isNull
    ? "Nothing (null)."
    : `Left out${value === undefined ? "." : `; the tool uses ${valueText(value)}.`}`;
  const set = () => {
    focusField(field.id);
    onChange(withValue(context, field));
  };
  return (
    <div className="field">
      <div className="field-head">
        <span className="field-label">{label}</span>
        {action}
        <Button size="sm" variant="subtle" aria-label={`Set a value: ${label}`} onClick={set}>
          Set a value
        </Button>
      </div>
      <span className="field-description">
        {[state, textsOf(field, context)].filter(Boolean).join(" ")}
      </span>
    </div>
  );
}

function FilledControl(props: ControlProps) {
  switch (props.field.content.kind) {
    case "object":
      return <ObjectControl {...props} />;
    case "list":
      return <ListControl {...props} />;
    default:
      return <LeafControl {...props} />;
  }
}

/** The control of a field: an input, a group of them, or a sentence if there is no value. */
export function EditControl(props: ControlProps) {
  const { field, action } = props;
  const { kind } = field.content;
  const isEmpty = kind === "omitted" || kind === "null";
  const actions = (
    <span className="row gap-1">
      <ClearButton {...props} />
      {action}
    </span>
  );
  return (
    <div data-field={field.id}>
      {isEmpty ? <EmptyControl {...props} /> : <FilledControl {...props} action={actions} />}
    </div>
  );
}
