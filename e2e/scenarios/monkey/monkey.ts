import { writeFile } from "node:fs/promises";
import { type BrowserContext, expect, type Locator, type Page } from "@playwright/test";
import { ChatPage } from "../chat-page.ts";
import type { DemoServer } from "../demo-server.ts";
import type { NetworkProxy } from "../network-proxy.ts";
import { type ActionName, act, DECK, isGone, PATIENCE, reconnect, type Scene } from "./actions.ts";
import { ApprovalBook } from "./effects.ts";
import { seededRandom, shuffled } from "./random.ts";
import { readThread, type ThreadView, threadDifference } from "./thread-view.ts";
import { chatOf, Watch } from "./watch.ts";

/** Milliseconds after which a chat at rest shows what is stored. */
const CALM = 30_000;
/** The same for a page whose requests are still ending, as on a busy machine. */
const MAX_CALM = 120_000;
/** Milliseconds without the end of a request after which the page is not at work. */
const SILENCE = 10_000;
/** Milliseconds between two looks. */
const LOOK_INTERVAL = 300;
/** Milliseconds by which a run is longer at most, until it has done enough. */
const MAX_EXTENSION = 240_000;
/** The number of actions between two calm points. */
const ACTIONS_PER_CALM = 25;

const NOTE = { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("a note") };

/** One action of a run, in the form in which it is played again. */
export interface Step {
  readonly name: ActionName;
  readonly seed: number;
  /** Milliseconds after the action. */
  readonly pause: number;
}

/** A random person at the page, with two tabs and a network that fails. */
export class Monkey {
  readonly steps: Step[] = [];
  readonly counts: Record<string, number> = {};
  readonly #book = new ApprovalBook();
  readonly #touched = new Set<string>();
  #scene!: Scene;
  #witness!: Page;

  constructor(
    readonly server: DemoServer,
    readonly network: NetworkProxy,
  ) {}

  /** Open two tabs in the context, and a page in another browser that shows what is stored. */
  async open(context: BrowserContext, witness: Page, transport: string): Promise<void> {
    const watch = await Watch.start(context, this.#book);
    for (const browser of [context, witness.context()]) {
      await browser.grantPermissions(["geolocation"]);
      await browser.setGeolocation({ latitude: 46.948, longitude: 7.447 });
    }
    const tabs = [await context.newPage(), await context.newPage()];
    this.#scene = { tabs, network: this.network, watch, tab: 0, task: 0 };
    this.#witness = witness;
    for (const page of tabs) {
      await new ChatPage(page, this.server, this.network.url).open();
      // The page may be reloaded meanwhile.
      page.on("filechooser", (chooser) => void chooser.setFiles(NOTE).catch(() => {}));
    }
    const [page] = tabs as [Page];
    await page.getByRole("button", { name: "Developer tools" }).click();
    await page.getByRole("radio", { name: transport }).check();
    await page.getByRole("button", { name: "Close the developer tools" }).click();
    await (tabs[1] as Page).goto(`/?chat=${chatOf(page)}`);
  }

  /**
   * Act at random until the time is over, and through each kind of action at least once. On a busy
   * machine the run goes on until its summary exceeds the minimums.
   */
  async run(seed: number, milliseconds: number, minimums: Readonly<Record<string, number>>) {
    const random = seededRandom(seed);
    const end = performance.now() + milliseconds;
    const isOver = async () => {
      if (performance.now() < end) return false;
      if (performance.now() > end + MAX_EXTENSION) return true;
      const summary = await this.summary();
      return Object.entries(minimums).every(([name, least]) => (summary[name] ?? 0) > least);
    };
    for (let isComplete = false; !isComplete || !(await isOver()); isComplete = true) {
      for (const name of shuffled(DECK, random)) {
        const pause = random() < 0.5 ? 0 : Math.floor(random() ** 2 * 1500);
        await this.step({ name, seed: Math.floor(random() * 2 ** 32), pause });
        if (isComplete && (await isOver())) break;
      }
    }
    await this.calm();
  }

  async step(step: Step): Promise<void> {
    const { tabs, tab, watch } = this.#scene;
    watch.log(tabs[tab] as Page, `${step.name} in ${chatOf(tabs[tab] as Page)}`);
    const isDone = await act(step.name, this.#scene, seededRandom(step.seed));
    const name = isDone ? step.name : "without opportunity";
    this.counts[name] = (this.counts[name] ?? 0) + 1;
    if (!isDone) return;
    this.steps.push(step);
    for (const page of this.#scene.tabs) this.#touched.add(chatOf(page));
    await this.#witness.waitForTimeout(step.pause);
    if (this.steps.length % ACTIONS_PER_CALM === 0) await this.calm();
  }

  /** What was decided, and how often the tools ran. */
  async summary(): Promise<Record<string, number>> {
    const [approved, denied] = [this.#book.accepted(true), this.#book.accepted(false)];
    return {
      actions: this.steps.length,
      tasks: this.#scene.task,
      ...this.counts,
      approved: approved.length,
      denied: denied.length,
      decided: approved.length + denied.length,
      edited: approved.filter(({ edits }) => edits !== undefined).length,
      effects: (await this.server.effects()).length,
    };
  }

  /** Stop acting, and check what must be true at rest. */
  async calm(): Promise<void> {
    await reconnect(this.#scene);
    for (const page of this.#scene.tabs) await settle(page);
    for (const page of this.#scene.tabs) await this.#expectStored(page);
    for (const chat of this.#touched) {
      await expect
        .poll(async () => (await this.#readStored(chat)).running, { timeout: MAX_CALM })
        .toEqual([]);
    }
    this.#touched.clear();
    const problems = this.#book.problems(await this.server.effects());
    expect(
      problems.map((problem) => this.#book.account(problem)),
      "effects",
    ).toEqual([]);
    expect(this.#scene.watch.problems, "errors of the page").toEqual([]);
  }

  /** The page shows what it shows after a reload, and nothing of it runs. */
  async #expectStored(page: Page): Promise<void> {
    const start = performance.now();
    for (;;) {
      const difference = await this.#differenceOf(page);
      if (difference === "") return;
      const now = performance.now();
      // On a busy machine the page may still be at work.
      const isSilent = now - this.#scene.watch.lastRequestAt > SILENCE;
      if (now - start > (isSilent ? CALM : MAX_CALM)) {
        const shown = await page.locator("body").innerText();
        const problems = this.#scene.watch.problems.join("\n");
        throw new Error(
          `Long after the last action, the tab at ${page.url()}: ${difference}\n${shown}\n${problems}`,
        );
      }
      await page.waitForTimeout(LOOK_INTERVAL);
    }
  }

  async #differenceOf(page: Page): Promise<string> {
    const live = await readThread(page);
    if (live.running.length > 0) return `The page shows: ${live.running.join(", ")}`;
    return threadDifference(live, await this.#readStored(chatOf(page)));
  }

  async #readStored(chat: string): Promise<ThreadView> {
    await this.#witness.goto(`${this.server.url}/?chat=${chat}`);
    await expect(this.#witness.getByRole("log")).toBeVisible();
    const { messages, status } = await this.#witness.evaluate(async (chat) => {
      const response = await fetch(`/api/chats/${chat}`);
      return response.ok ? response.json() : { messages: [], status: "ready" };
    }, chat);
    // Only a server that dies interrupts an answer.
    expect(status, `the status of ${chat}`).not.toBe("interrupted");
    const articles = this.#witness.getByRole("log").getByRole("article");
    await expect.poll(() => articles.count()).toBeGreaterThanOrEqual(messages.length);
    const view = await readThread(this.#witness);
    this.#book.record(chat, view);
    return view;
  }

  /** What the tabs did last. */
  get log(): readonly string[] {
    return this.#scene.watch.lines;
  }

  /** Write the actions to a file, from which they can be played again. */
  async writeSteps(path: string): Promise<void> {
    await writeFile(path, this.steps.map((step) => `${JSON.stringify(step)}\n`).join(""));
  }
}

/** Close what a person has open, and open what could not be loaded without a network. */
async function settle(page: Page): Promise<void> {
  // The network was cut between a document and its script, or before both.
  if ((await page.locator("#page > *").count()) === 0) await page.reload();
  if ((await page.locator("dialog[open]").count()) > 0) await page.keyboard.press("Escape");
  const close = page.getByRole("button", { name: /^(?:Close the developer tools|Cancel)$/ });
  while ((await close.count()) > 0) await clickIfThere(close.first());
  const unopened = page.getByRole("alert").filter({ hasText: "The chat could not be opened" });
  if ((await unopened.count()) > 0) await clickIfThere(unopened.getByRole("button"));
  // A person can delete a chat by its keys.
  const deleted = page.getByRole("alert").filter({ hasText: "This chat was deleted" });
  if ((await deleted.count()) > 0) await clickIfThere(deleted.getByRole("button"));
}

/** Click a button that may go by itself, as with a form whose card another tab has decided. */
async function clickIfThere(button: Locator): Promise<void> {
  await button.click({ timeout: PATIENCE }).catch((error: unknown) => {
    if (!isGone(error)) throw error;
  });
}
