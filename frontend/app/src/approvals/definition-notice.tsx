import type { DefinitionChange } from "sluicegate";
import { Alert } from "../components/alert.tsx";
import { TextWarnings } from "../components/text-warnings.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { isRecord } from "../is-record.ts";

/** A part of a definition, as text and as the value that is checked for misleading characters. */
interface Version {
  readonly text: string;
  readonly value: unknown;
}

/** A changed part of a definition; a version is undefined if it was or is not there. */
interface Difference {
  readonly title: string;
  readonly before: Version | undefined;
  readonly now: Version | undefined;
}

function propertiesOf(schema: unknown): Record<string, unknown> {
  return isRecord(schema) && isRecord(schema.properties) ? schema.properties : {};
}

/** The schema of an argument, and whether it is required. */
function argumentOf(schema: unknown, name: string): Version | undefined {
  const properties = propertiesOf(schema);
  if (!Object.hasOwn(properties, name)) return undefined;
  const required = isRecord(schema) && Array.isArray(schema.required) ? schema.required : [];
  const value = properties[name];
  const kind = required.includes(name) ? "required" : "optional";
  return { text: `${kind}, ${JSON.stringify(value)}`, value };
}

/** The changed arguments of two schemas; the schemas themselves if these do not differ. */
function argumentDifferences(before: unknown, now: unknown): Difference[] {
  const names = new Set([before, now].flatMap((schema) => Object.keys(propertiesOf(schema))));
  const differences = [...names]
    .map((name) => ({
      title: `Argument ${name}`,
      before: argumentOf(before, name),
      now: argumentOf(now, name),
    }))
    .filter((difference) => difference.before?.text !== difference.now?.text);
  if (differences.length > 0) return differences;
  const version = (value: unknown) => ({ text: JSON.stringify(value), value });
  return [{ title: "Arguments", before: version(before), now: version(now) }];
}

interface VersionViewProps {
  readonly title: string;
  readonly version: Version | undefined;
}

function VersionView({ title, version }: VersionViewProps) {
  return (
    <div className="text-sm">
      <span className="dim">{title}: </span>
      {version === undefined ? "no such argument" : <VisibleText text={version.text} />}
      <TextWarnings value={version?.value} />
    </div>
  );
}

function DifferenceView({ title, before, now }: Difference) {
  return (
    <div className="stack gap-1">
      <p className="text-sm strong">
        <VisibleText text={title} />
      </p>
      <VersionView title="Before" version={before} />
      <VersionView title="Now" version={now} />
    </div>
  );
}

/** What changed in the definition of a tool since it was granted. */
export function DefinitionNotice({ changed }: { readonly changed: DefinitionChange }) {
  const { description, parameters } = changed;
  const [oldText, newText] = description ?? [];
  const text = (value = "") => ({ text: value, value });
  const differences: Difference[] = [
    ...(description ? [{ title: "Description", before: text(oldText), now: text(newText) }] : []),
    ...(parameters ? argumentDifferences(...parameters) : []),
  ];
  return (
    <Alert
      tone="warning"
      isAnnounced
      title="This tool has changed since you allowed it in this chat, so you are asked again"
    >
      {differences.map((difference) => (
        <DifferenceView key={difference.title} {...difference} />
      ))}
    </Alert>
  );
}
