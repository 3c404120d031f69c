import { type ComponentProps, startTransition, useEffect, useState } from "react";
import type { Markdown } from "./markdown.tsx";
import { PlainText } from "./plain-text.tsx";

let component: typeof Markdown | undefined;

// Loaded at once, but beside the code that a card needs. Without it the text has no markup.
const loading = import("./markdown.tsx").then(
  (module) => {
    component = module.Markdown;
  },
  () => {},
);

/** Text of a model as Markdown; as plain text until the Markdown parser is loaded. */
export function LazyMarkdown(props: ComponentProps<typeof Markdown>) {
  const [Loaded, setLoaded] = useState(() => component);
  const isLoaded = Loaded !== undefined;
  useEffect(() => {
    // A transition does not block the page while all messages are parsed.
    if (!isLoaded) void loading.then(() => startTransition(() => setLoaded(() => component)));
  }, [isLoaded]);
  return Loaded === undefined ? <PlainText text={props.text} /> : <Loaded {...props} />;
}
