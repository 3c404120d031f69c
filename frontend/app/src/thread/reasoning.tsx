import { Disclosure } from "../components/disclosure.tsx";
import { LazyMarkdown } from "../markdown/lazy-markdown.tsx";

interface ReasoningProps {
  readonly text: string;
  readonly isStreaming: boolean;
}

/** The thoughts of a model: their end while they stream, and collapsed afterwards. */
export function Reasoning({ text, isStreaming }: ReasoningProps) {
  if (text.trim() === "") return null;
  const thoughts = (
    <div className="text-sm dim">
      <LazyMarkdown text={text} isStreaming={isStreaming} />
    </div>
  );
  return (
    <div>
      <Disclosure label={isStreaming ? "Thinking" : "Thoughts"}>{thoughts}</Disclosure>
      {isStreaming && (
        <div className="streaming-thoughts" inert>
          {thoughts}
        </div>
      )}
    </div>
  );
}
