import type { SourceDocumentUIPart, SourceUrlUIPart } from "ai";
import { safeLink } from "../safe-urls.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";

export type Source = SourceUrlUIPart | SourceDocumentUIPart;

function SourceLink({ source }: { readonly source: Source }) {
  if (source.type === "source-document") return visibleName(source.title);
  const name = visibleName(source.title ?? source.url);
  const url = safeLink(source.url);
  if (url === undefined) return name;
  return (
    <a href={url} title={url} target="_blank" rel="noopener noreferrer">
      {name}
    </a>
  );
}

/** The sources of an answer. */
export function Sources({ sources }: { readonly sources: readonly Source[] }) {
  if (sources.length === 0) return null;
  return (
    <section className="stack gap-1 text-sm" aria-label="Sources">
      <p className="strong">Sources</p>
      <ul className="sources literal">
        {sources.map((source) => (
          <li key={source.sourceId}>
            <SourceLink source={source} />
          </li>
        ))}
      </ul>
    </section>
  );
}
