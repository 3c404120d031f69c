/** What the settings of the server choose for the page. */
export interface Branding {
  readonly title: string;
  /** The URL of a picture. */
  readonly logo: string;
  /** The heading of a chat without messages. */
  readonly welcome: string;
  /** Suggested first messages. */
  readonly suggestions: readonly string[];
}

const DEFAULTS: Branding = {
  title: "sluicegate",
  logo: "./favicon.svg",
  welcome: "What should the agent do?",
  suggestions: [],
};

/** The theme that the server has written into the page. */
export function branding(): Branding {
  const content = document.querySelector<HTMLMetaElement>("meta[name=sluicegate-page]")?.content;
  const given: Partial<Record<keyof Branding, unknown>> = JSON.parse(content || "{}");
  const set = Object.entries(given).filter(([, value]) => value !== null);
  return { ...DEFAULTS, ...Object.fromEntries(set) };
}
