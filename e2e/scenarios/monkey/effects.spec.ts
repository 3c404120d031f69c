import { expect, test } from "@playwright/test";
import { ApprovalBook } from "./effects.ts";

const paid = (amount: number) =>
  JSON.stringify({ tool: "process_payment", args: { recipient: "Ada", amount, currency: "EUR" } });

function shownRow(amount: number, state: string, toolCallId: string) {
  const summary = `Ada, ${amount} EUR`;
  return { toolCallId, title: "Send money", summary, state, text: `Send money ${summary}` };
}

interface Story {
  readonly pressed?: number;
  readonly grant?: "values" | "tool";
  /** The calls that the page shows, by amount and state. */
  readonly shown: readonly (readonly [amount: number, state: string])[];
  readonly paid: readonly number[];
  readonly problem?: string;
}

const STORIES: Record<string, Story> = {
  "an approved payment": { pressed: 5, shown: [[5, "done"]], paid: [5] },
  "a granted payment": {
    pressed: 5,
    grant: "values",
    shown: [
      [5, "done"],
      [5, "done"],
    ],
    paid: [5, 5],
  },
  "a payment twice": { pressed: 5, shown: [[5, "done"]], paid: [5, 5], problem: "no page shows" },
  "a payment of another amount": {
    pressed: 4,
    shown: [[5, "done"]],
    paid: [5],
    problem: "not approved on the screen",
  },
  "a payment beyond the grant": {
    pressed: 5,
    grant: "values",
    shown: [
      [5, "done"],
      [6, "done"],
    ],
    paid: [5, 6],
    problem: "not approved on the screen",
  },
  "a payment without an approval": {
    shown: [[5, "done"]],
    paid: [5],
    problem: "not approved on the screen",
  },
  "a payment that did not happen": {
    pressed: 5,
    shown: [[5, "done"]],
    paid: [],
    problem: "did not run",
  },
  "an approval without a payment": {
    pressed: 5,
    shown: [[5, "approved, running"]],
    paid: [],
    problem: "is lost",
  },
};

for (const [name, { pressed, grant, shown, paid: amounts, problem }] of Object.entries(STORIES)) {
  test(`the book of a monkey judges ${name}`, () => {
    const book = new ApprovalBook();
    const rows = shown.map(([amount, state], index) => shownRow(amount, state, `call-${index}`));
    book.record("chat", { messages: [], rows, running: [] });
    if (pressed !== undefined) {
      book.presses.push({
        approvalId: "approval",
        toolCallId: "call-0",
        title: "Send money",
        shown: { recipient: "Ada", amount: String(pressed), currency: "EUR" },
        grant,
        chat: "chat",
      });
      const decision = { approvalId: "approval", approved: true, edits: undefined };
      book.decisions.push({ ...decision, at: 1, isAccepted: true });
    }
    const problems = book.problems(amounts.map(paid)).join("\n");
    if (problem === undefined) expect(problems).toBe("");
    else expect(problems).toContain(problem);
  });
}
