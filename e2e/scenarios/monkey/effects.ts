import type { ThreadView, ToolRow } from "./thread-view.ts";

/** The arguments of a call, as texts by their names. */
type ShownArguments = Readonly<Record<string, unknown>>;

/** A press on a button that approves, with the arguments that its card showed. */
export interface Press {
  readonly approvalId: string;
  readonly toolCallId: string;
  readonly title: string;
  readonly shown: ShownArguments;
  /** The calls that it approves too: those with the same values, or those of the tool. */
  readonly grant: "values" | "tool" | undefined;
  readonly chat: string;
}

/** A decision that the page sent. */
interface SentDecision {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly edits: ShownArguments | undefined;
  readonly at: number;
  /** Whether the server confirmed it; a confirmation may be lost with the connection. */
  isAccepted: boolean;
}

/** The titles of the tools whose executions the server records. */
const RECORDED = ["Send money", "Change the customer database", "Compile a report"];

/** The states of a call that ran; its result may be held back until the person has decided more. */
const EXECUTED = ["done", "done, waiting for your other approvals"];

const oneLine = (text: string) => text.replaceAll(/\s+/g, " ").replaceAll(" ,", ",").trim();

/** A call on one line, as the row of the page shows it. */
export function callKey(values: ShownArguments): string {
  const text = (name: string) => oneLine(String(values[name] ?? ""));
  const isPayment = "amount" in values || "recipient" in values;
  const parts = isPayment
    ? [text("recipient"), `${text("amount")} ${text("currency")}`]
    : ["change", "rows", "topic"].map(text);
  return oneLine(parts.filter((part) => part !== "").join(", "));
}

/** The items of a list that another one lacks, each as often as it is missing. */
function missing(items: readonly string[], others: readonly string[]): string[] {
  const rest = [...others];
  return items.filter((item) => {
    const index = rest.indexOf(item);
    if (index >= 0) rest.splice(index, 1);
    return index < 0;
  });
}

/** What was approved on the screen, what was sent of it, and what the chats show. */
export class ApprovalBook {
  readonly presses: Press[] = [];
  readonly decisions: SentDecision[] = [];
  /** When a message, a stop, an edit or a regeneration of a chat was sent last. */
  readonly #interruptions = new Map<string, number>();
  readonly #rows = new Map<string, readonly ToolRow[]>();
  readonly #views = new Map<string, ThreadView>();
  readonly #deleted = new Set<string>();

  interrupt(chat: string): void {
    this.#interruptions.set(chat, performance.now());
  }

  /** Record that a chat was deleted, with what it showed. */
  delete(chat: string): void {
    this.#deleted.add(chat);
    this.#rows.delete(chat);
  }

  /** Record the calls that the page of a chat shows after it was loaded. */
  record(chat: string, view: ThreadView): void {
    this.#views.set(chat, view);
    this.#rows.set(
      chat,
      view.rows.filter(({ title }) => RECORDED.includes(title)),
    );
  }

  /** What the decisions on a call were, and what its chat showed last. */
  account(problem: string): string {
    const presses = this.presses.filter(({ title, shown }) => {
      return RECORDED.includes(title) && problem.includes(callKey(shown));
    });
    const ids = new Set(presses.map(({ approvalId }) => approvalId));
    const chats = new Set(presses.map(({ chat }) => chat));
    return [
      problem,
      ...presses.map((press) => `  pressed ${JSON.stringify(press)}`),
      ...this.decisions
        .filter(({ approvalId }) => ids.has(approvalId))
        .map((decision) => `  sent ${JSON.stringify(decision)}`),
      ...[...chats].map((chat) => `  chat ${chat} ${JSON.stringify(this.#views.get(chat))}`),
    ].join("\n");
  }

  /** The accepted decisions. */
  accepted(approved: boolean): readonly SentDecision[] {
    return this.decisions.filter((sent) => sent.isAccepted && sent.approved === approved);
  }

  /** What is wrong with the effects of the server, as lines of JSON; empty if nothing is. */
  problems(effects: readonly string[]): string[] {
    const executed = effects.map((line) => callKey(JSON.parse(line).args));
    const done = [...this.#rows].flatMap(([chat, rows]) =>
      rows.filter(({ state }) => EXECUTED.includes(state)).map((row) => ({ chat, row })),
    );
    const shown = done.map(({ row }) => oneLine(row.summary));
    return [
      ...missing(executed, shown)
        .filter((key) => !this.#isOfDeleted(key))
        .map((key) => `"${key}" was executed, and no page shows it`),
      ...missing(shown, executed).map((key) => `"${key}" is shown as done, and did not run`),
      ...done
        .filter(({ chat, row }) => !this.#isApproved(chat, row))
        .map(({ row }) => `"${row.text}" was executed, and not approved on the screen`),
      ...this.#notPressed(),
      ...this.#lost(),
    ];
  }

  #isApproved(chat: string, row: ToolRow): boolean {
    const key = oneLine(row.summary);
    return this.presses.some((press) => {
      const isSame = callKey(press.shown) === key;
      if (press.toolCallId === row.toolCallId) return isSame;
      if (press.chat !== chat || press.title !== row.title) return false;
      return press.grant === "tool" || (press.grant === "values" && isSame);
    });
  }

  /** Whether a call was approved on the screen in a chat that does not show it any more. */
  #isOfDeleted(key: string): boolean {
    return this.presses.some(
      ({ chat, grant, shown }) =>
        this.#deleted.has(chat) && (grant === "tool" || callKey(shown) === key),
    );
  }

  /** Approvals that the page sent without a press, or with other arguments than those shown. */
  #notPressed(): string[] {
    const isPressed = ({ approvalId, edits }: SentDecision) =>
      this.presses.some(
        (press) =>
          press.approvalId === approvalId &&
          (edits === undefined || callKey(press.shown) === callKey(edits)),
      );
    return this.decisions
      .filter((sent) => sent.approved && !isPressed(sent))
      .map((sent) => `${JSON.stringify(sent)} was sent, and not approved on the screen`);
  }

  /** Accepted approvals whose call neither ran nor was withdrawn by something sent later. */
  #lost(): string[] {
    const rows = new Map([...this.#rows.values()].flat().map((row) => [row.toolCallId, row]));
    return this.accepted(true).flatMap(({ approvalId, at }) => {
      const press = this.presses.find((press) => press.approvalId === approvalId);
      if (press === undefined || !RECORDED.includes(press.title)) return [];
      if (this.#deleted.has(press.chat)) return [];
      const row = rows.get(press.toolCallId);
      const isWaiting = row === undefined ? false : row.state.startsWith("approved, waits");
      const isInterrupted = (this.#interruptions.get(press.chat) ?? 0) >= at;
      const isExecuted = row !== undefined && EXECUTED.includes(row.state);
      if (isExecuted || isWaiting || isInterrupted) return [];
      return [`the approval of "${callKey(press.shown)}" is lost: ${row?.state ?? "not shown"}`];
    });
  }
}
