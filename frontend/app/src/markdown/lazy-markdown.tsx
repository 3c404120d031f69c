import { type ComponentProps, startTransition, useEffect, useState } from "react";
import type { Markdown } from "./markdown.tsx";
import { PlainText } from "./plain-text.tsx";

let component: typeof Markdown | undefined;

let loading: Promise<void> | undefined;

/**
 * Load the Markdown parser, before its first text if an answer is expected. A card that waits is
 * loaded without it.
 */
export function loadMarkdown(): Promise<void> {
  loading ??= load();
  return loading;
}

// Vite moves handlers of `import().then()` inside its preload, whose errors they would miss.
async function load(): Promise<void> {
  try {
    component = (await import("./markdown.tsx")).Markdown;
  } catch {
    // Without the module, for instance offline, the text has no markup; the next one tries again.
    loading = undefined;
  }
}

/** Text of a model as Markdown; as plain text until the Markdown parser is loaded. */
export function LazyMarkdown(props: ComponentProps<typeof Markdown>) {
  const [Loaded, setLoaded] = useState(() => component);
  const isLoaded = Loaded !== undefined;
  useEffect(() => {
    // A transition does not block the page while all messages are parsed.
    if (!isLoaded)
      void loadMarkdown().then(() => startTransition(() => setLoaded(() => component)));
  }, [isLoaded]);
  return Loaded === undefined ? <PlainText text={props.text} /> : <Loaded {...props} />;
}
