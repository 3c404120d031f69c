import type { Page } from "@playwright/test";

/** A tool call as its row shows it. */
export interface ToolRow {
  readonly toolCallId: string;
  readonly title: string;
  /** The arguments on one line. */
  readonly summary: string;
  readonly state: string;
  readonly text: string;
}

/** A message as it is shown: its text, and its calls by their ids. */
interface MessageView {
  readonly author: string;
  readonly text: string;
  readonly calls: Readonly<Record<string, string>>;
}

/** What a page shows of a chat. */
export interface ThreadView {
  readonly messages: readonly MessageView[];
  readonly rows: readonly ToolRow[];
  /** What is in progress, by the words of the page; empty if the chat is at rest. */
  readonly running: readonly string[];
}

/** Read the thread of a page without its forms, hints, opened details and earlier versions. */
export async function readThread(page: Page): Promise<ThreadView> {
  return page.evaluate(() => {
    const oneLine = (element: Element | null | undefined) =>
      (element?.textContent ?? "").replaceAll(/\s+/g, " ").trim();
    const without = (element: Element, selector: string) => {
      const copy = element.cloneNode(true) as Element;
      for (const part of copy.querySelectorAll(selector)) part.remove();
      return oneLine(copy);
    };
    const log = document.querySelector("[role=log]")?.cloneNode(true) as Element | undefined;
    // An earlier version is read beside what is stored.
    for (const version of log?.querySelectorAll("section[aria-label$=', replaced']") ?? []) {
      version.remove();
    }
    const rowOf = (row: Element): ToolRow => ({
      toolCallId: row.getAttribute("data-tool-call-id") ?? "",
      title: oneLine(row.querySelector(".strong")),
      summary: oneLine(row.querySelector(".dim > bdi")),
      state: oneLine(row.querySelector(".badge")),
      text: without(row, "button, .disclosure-content"),
    });
    // A card that this page has decided keeps its place until its group is complete.
    const waiting = (row: ToolRow, hasCards: boolean) => {
      if (hasCards && /^approved, waits/.test(row.state)) return "decided: approved";
      if (hasCards && row.state === "denied") return "decided: denied";
      return row.text;
    };
    const cardState = (card: Element) =>
      card.hasAttribute("data-open") ? "open" : `decided: ${oneLine(card.querySelector(".badge"))}`;
    const messageOf = (article: Element): MessageView => {
      const cards = [...article.querySelectorAll("[data-approval]")];
      const calls = [
        ...cards.map((card) => [card.getAttribute("data-tool-call-id"), cardState(card)]),
        ...[...article.querySelectorAll(".tool-call")]
          .map(rowOf)
          .map((row) => [row.toolCallId, waiting(row, cards.length > 0)]),
      ].sort();
      const controls =
        "button, [role=alert], [role=group], [role=status], nav, .disclosure-content";
      return {
        author: article.getAttribute("data-author") ?? "",
        text: without(article, `.tool-call, [data-approval], ${controls}`),
        calls: Object.fromEntries(calls),
      };
    };
    const articles = [...(log?.querySelectorAll("article.message") ?? [])];
    const rows = [...(log?.querySelectorAll(".tool-call") ?? [])].map(rowOf);
    const badges = [...(log?.querySelectorAll(".badge") ?? [])].map(oneLine);
    const running = [
      ...articles.filter((article) => article.ariaBusy === "true").map(() => "Answering"),
      ...badges.filter((badge) => /running|being (?:sent|prepared)/.test(badge)),
      ...(/Reconnecting…/.test(log?.textContent ?? "") ? ["Reconnecting"] : []),
      ...(document.querySelector("button[aria-label=Stop]") ? ["Stop is offered"] : []),
      ...(log === undefined ? ["No thread"] : []),
    ];
    return { messages: articles.map(messageOf), rows, running };
  });
}

/** The difference between what a page shows and what it shows after a reload. */
export function threadDifference(live: ThreadView, stored: ThreadView): string {
  const lines = ({ messages }: ThreadView) => messages.map((message) => JSON.stringify(message));
  const [some, others] = [lines(live), lines(stored)];
  const index = Math.max(some.length, others.length);
  for (let line = 0; line < index; line += 1) {
    if (some[line] !== others[line]) return `live:   ${some[line]}\nstored: ${others[line]}`;
  }
  return "";
}
