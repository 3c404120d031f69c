import type { BrowserContext, Page, Request } from "@playwright/test";
import type { ApprovalBook, Press } from "./effects.ts";

type ReportPress = (press: Omit<Press, "chat">) => Promise<void>;

/** Report each press on a button that approves; runs in the page. */
function reportPresses(): void {
  const textOf = (element: Element | null) =>
    (element?.textContent ?? "").replaceAll(/\s+/g, " ").trim();
  const shownArguments = (card: Element): Record<string, unknown> => {
    const form = card.querySelector('[role=group][aria-label="Edit the arguments"]');
    if (form !== null) {
      const fields = form.querySelectorAll<HTMLInputElement>("input, select, textarea");
      const entries = [...fields].map((field) => [textOf(field.labels?.[0] ?? null), field.value]);
      const values = Object.fromEntries(entries);
      // The server receives a number.
      for (const name of ["amount", "rows"]) if (name in values) values[name] = +values[name];
      return values;
    }
    const rows = card.querySelectorAll('table[aria-label="Arguments"] > tbody > tr');
    const values = Object.fromEntries(
      [...rows].map((row) => [textOf(row.querySelector("th")), textOf(row.querySelector("td"))]),
    );
    // The card shows an amount with its currency.
    const { amount, currency } = values;
    return amount === undefined
      ? values
      : { ...values, amount: amount.replace(` ${currency}`, "") };
  };
  const grantOf = (card: Element, label: string) => {
    if (!label.includes("do not ask again")) return undefined;
    const scope = card.querySelector("input[type=radio]:checked") as HTMLInputElement | null;
    return textOf(scope?.labels?.[0] ?? null).startsWith("This tool") ? "tool" : "values";
  };
  const isApproving = (button: Element, label: string) =>
    button.getAttribute("aria-disabled") !== "true" &&
    (/^Approve/.test(label) ||
      (label === "Retry" &&
        /Your approval was not (sent|confirmed)/.test(textOf(button.closest("[role=alert]")))));
  document.addEventListener(
    "click",
    ({ target }) => {
      const button = (target as Element).closest("button");
      const label = textOf(button);
      if (button === null || !isApproving(button, label)) return;
      const own = button.closest("[data-approval]");
      const cards = own === null ? document.querySelectorAll("[data-approval][data-open]") : [own];
      for (const card of cards) {
        void (window as unknown as { reportPress: ReportPress }).reportPress({
          approvalId: card.getAttribute("data-approval") ?? "",
          toolCallId: card.getAttribute("data-tool-call-id") ?? "",
          title: textOf(card.querySelector(".strong")),
          shown: shownArguments(card),
          grant: grantOf(card, label),
        });
      }
    },
    true,
  );
}

export const chatOf = (page: Page) => new URL(page.url()).searchParams.get("chat") ?? "";

/** Refusals that a person causes who is faster than the page: an answer was changed meanwhile. */
const REFUSALS: readonly (readonly [method: string, path: RegExp, status: number])[] = [
  ["POST", /^\/api\/chat$/, 409],
  ["POST", /^\/api\/approvals\/[^/]+$/, 409],
  ["DELETE", /^\/api\/chats\/[^/]+$/, 409],
  // A new chat is unknown to the server until its first message.
  ["GET", /^\/api\/chats\/[^/]+$/, 404],
  ["GET", /^\/api\/chats\/[^/]+\/grants$/, 404],
];

/** The errors of a browser without a network; none is expected while there is one. */
const NETWORK_ERROR =
  /^(?:Failed to load resource: net::ERR_(?:CONNECTION_RESET|CONNECTION_CLOSED|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING|SOCKET_NOT_CONNECTED)$|WebSocket connection to 'ws:\/\/127\.0\.0\.1:\d+\/api\/(?:chat\/ws|live)(?:\?[^']*)?' failed: )/;

/** The number of lines that are kept. */
const KEPT = 400;

interface Message {
  readonly role: string;
}

interface SendBody {
  readonly id: string;
  readonly trigger?: string;
  readonly messages?: readonly Message[];
}

/** What happens in the pages of a context: presses and decisions, and everything unexpected. */
export class Watch {
  readonly problems: string[] = [];
  /** The last actions, frames, and requests to the server with their outcomes. */
  readonly lines: string[] = [];
  /** When a request ended last. */
  lastRequestAt = 0;
  /** Whether the network is cut, or was until a moment ago. */
  isOffline = false;
  readonly #book: ApprovalBook;
  readonly #tabs: Page[] = [];

  private constructor(book: ApprovalBook) {
    this.#book = book;
  }

  static async start(context: BrowserContext, book: ApprovalBook): Promise<Watch> {
    const watch = new Watch(book);
    await context.exposeBinding("reportPress", ({ page }, press: Omit<Press, "chat">) => {
      book.presses.push({ ...press, chat: chatOf(page) });
    });
    await context.addInitScript(reportPresses);
    context.on("page", (page) => watch.#watchPage(page));
    context.on("request", (request) => watch.#onRequest(request));
    context.on("requestfinished", async (request) =>
      watch.#log(request, String((await request.response())?.status())),
    );
    context.on("requestfailed", (request) =>
      watch.#log(request, request.failure()?.errorText ?? ""),
    );
    context.on("response", async (response) => {
      const { method, path } = addressOf(response.request());
      const status = response.status();
      const [, chat] = /^\/api\/chats\/([^/]+)$/.exec(path) ?? [];
      if (method === "DELETE" && status === 204 && chat !== undefined) book.delete(chat);
      if (status < 400) return;
      const isExpected = REFUSALS.some(
        ([verb, pattern, refusal]) => verb === method && pattern.test(path) && refusal === status,
      );
      const text = await response.text().catch(() => "");
      if (!isExpected) watch.problems.push(`${method} ${path}: ${status} ${text}`);
    });
    return watch;
  }

  #log(request: Request, outcome: string): void {
    const { method, path } = addressOf(request);
    if (!path.startsWith("/api/")) return;
    this.lastRequestAt = performance.now();
    this.log(request.frame().page(), `${method} ${path} ${outcome}`);
  }

  /** Keep a line about a page, for the report of a failure. */
  log(page: Page, text: string): void {
    const time = new Date().toISOString().slice(14, 23);
    this.lines.push(`${time} tab ${this.#tabs.indexOf(page)}: ${text}`);
    if (this.lines.length > KEPT) this.lines.shift();
  }

  #watchPage(page: Page): void {
    this.#tabs.push(page);
    // Of promises too: the browser reports a rejection without a handler as an exception.
    page.on("pageerror", (error) => this.problems.push(`uncaught: ${error.stack ?? error}`));
    page.on("console", (message) => {
      if (message.type() !== "error") return;
      const text = message.text();
      // The response itself is judged.
      if (text.startsWith("Failed to load resource: the server responded with")) return;
      if (this.isOffline && NETWORK_ERROR.test(text)) return;
      this.problems.push(`console: ${text} (${message.location().url})`);
    });
    page.on("websocket", (socket) => {
      socket.on("framesent", ({ payload }) => {
        // The frames of a microphone are binary.
        if (typeof payload !== "string") return;
        const frame = JSON.parse(payload);
        this.log(page, `sent ${frame.type} ${frame.chatId ?? frame.id ?? ""} ${frame.requestId}`);
        if (frame.type === "send") this.#onSend(frame);
      });
      socket.on("framereceived", ({ payload }) => {
        if (typeof payload !== "string") return;
        const frame = JSON.parse(payload);
        if (frame.type === "chunk" || frame.type === "heartbeat") return;
        this.log(page, `received ${payload}`);
      });
      socket.on("close", () => this.log(page, "socket closed"));
    });
  }

  #onSend({ id, trigger, messages }: SendBody): void {
    const isOfPerson = trigger === "regenerate-message" || messages?.at(-1)?.role === "user";
    if (isOfPerson) this.#book.interrupt(id);
  }

  #onRequest(request: Request): void {
    const { method, path } = addressOf(request);
    if (method !== "POST") return;
    if (path === "/api/chat") this.#onSend(request.postDataJSON());
    const [, stopped] = /^\/api\/chat\/([^/]+)\/stop$/.exec(path) ?? [];
    if (stopped !== undefined) this.#book.interrupt(stopped);
    const [, approvalId] = /^\/api\/approvals\/([^/]+)$/.exec(path) ?? [];
    if (approvalId === undefined) return;
    const { approved, edits } = request.postDataJSON();
    const decision = {
      approvalId: decodeURIComponent(approvalId),
      approved,
      edits,
      at: performance.now(),
      isAccepted: false,
    };
    this.#book.decisions.push(decision);
    void request.response().then(
      (response) => {
        decision.isAccepted = response?.ok() === true;
      },
      () => {},
    );
  }
}

function addressOf(request: Request) {
  return { method: request.method(), path: new URL(request.url()).pathname };
}
