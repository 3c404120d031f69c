import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base, expect } from "@playwright/test";
import { ChatPage } from "../chat-page.ts";
import { DemoServer } from "../demo-server.ts";
import { ApprovalBook } from "./effects.ts";
import { readThread } from "./thread-view.ts";
import { chatOf, Watch } from "./watch.ts";

const payment = (amount: number) => ({
  call: {
    name: "process_payment",
    args: { recipient: `Payee ${amount}`, amount, currency: "EUR" },
  },
});

/** The agent pays twice, one after the other. */
const SCRIPT = {
  scenarios: [
    {
      match: "",
      responses: [
        { parts: [payment(5)] },
        { parts: [payment(6)] },
        { parts: [{ text: "Both are settled." }] },
      ],
    },
  ],
};

const test = base.extend<{ payer: ChatPage }>({
  payer: async ({ page }, use) => {
    const folder = await mkdtemp(join(tmpdir(), "sluicegate-effects-"));
    const script = join(folder, "script.json");
    await writeFile(script, JSON.stringify(SCRIPT));
    const server = await DemoServer.start("--model-script", script);
    await use(new ChatPage(page, server));
    await server.close();
    await rm(folder, { recursive: true });
  },
});

const HELD = "done, waiting for your other approvals";

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
  readonly isDeleted?: boolean;
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
  "a payment whose result waits for another approval": {
    pressed: 5,
    shown: [[5, HELD]],
    paid: [5],
  },
  "a held payment without an approval": {
    shown: [[5, HELD]],
    paid: [5],
    problem: "not approved on the screen",
  },
  "a held payment that did not happen": {
    pressed: 5,
    shown: [[5, HELD]],
    paid: [],
    problem: "did not run",
  },
  "a payment that did not happen": {
    pressed: 5,
    shown: [[5, "done"]],
    paid: [],
    problem: "did not run",
  },
  "a payment of a deleted chat": { pressed: 5, shown: [], paid: [5], isDeleted: true },
  "a payment beside that of a deleted chat": {
    pressed: 5,
    shown: [],
    paid: [5, 6],
    isDeleted: true,
    problem: '"Ada, 6 EUR" was executed, and no page shows it',
  },
  "an approval without a payment": {
    pressed: 5,
    shown: [[5, "approved, running"]],
    paid: [],
    problem: "is lost",
  },
};

for (const [name, story] of Object.entries(STORIES)) {
  test(`the book of a monkey judges ${name}`, () => {
    const { pressed, grant, shown, paid: amounts, isDeleted = false, problem } = story;
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
    if (isDeleted) book.delete("chat");
    const problems = book.problems(amounts.map(paid)).join("\n");
    if (problem === undefined) expect(problems).toBe("");
    else expect(problems).toContain(problem);
  });
}

for (const release of ["deferred", "preview", "progressive"] as const) {
  test(`the book of a monkey finds the first of two payments on the page, ${release}`, async ({
    payer,
  }) => {
    const book = new ApprovalBook();
    await Watch.start(payer.page.context(), book);
    await payer.open({ release });
    await payer.send("Pay both");
    for (const amount of [5, 6]) {
      await expect(payer.card("Send money")).toContainText(`Payee ${amount}`);
      await payer.page.reload();
      await expect(payer.card("Send money")).toContainText(`Payee ${amount}`);
      book.record(chatOf(payer.page), await readThread(payer.page));
      expect(await payer.server.effects()).toHaveLength(amount - 5);
      expect(book.problems(await payer.server.effects())).toEqual([]);
      await payer.approve("Send money");
    }
    await expect(payer.answer).toContainText("Both are settled.");
    await payer.waitForEnd();
    await payer.page.reload();
    await expect(payer.answer).toContainText("Both are settled.");
    book.record(chatOf(payer.page), await readThread(payer.page));
    expect(book.problems(await payer.server.effects())).toEqual([]);
  });
}
