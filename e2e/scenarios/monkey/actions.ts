import type { Locator, Page } from "@playwright/test";
import type { NetworkProxy } from "../network-proxy.ts";
import type { Random } from "./random.ts";
import { taskText } from "./tasks.ts";
import { chatOf, type Watch } from "./watch.ts";

/** What an action needs: two tabs of a browser, and their network. */
export interface Scene {
  readonly tabs: readonly Page[];
  readonly network: NetworkProxy;
  readonly watch: Watch;
  /** The index of the tab that is used. */
  tab: number;
  /** The number of the last task. */
  task: number;
}

/** An action; false if the page offers no opportunity for it. */
type Action = (scene: Scene, random: Random) => Promise<boolean>;

/** Milliseconds that a person looks for something that moves. */
export const PATIENCE = 1_000;
/** Milliseconds after which a button that ignores reflexes is no longer new to the person. */
const ARRIVAL = 600;

const pageOf = ({ tabs, tab }: Scene) => tabs[tab] as Page;
const pause = (page: Page, milliseconds: number) => page.waitForTimeout(milliseconds);
const main = (scene: Scene) => pageOf(scene).getByRole("main");
const composer = (scene: Scene) =>
  pageOf(scene).getByRole("textbox", { name: "Message", exact: true });

/** One of the elements; undefined if there is none. */
async function choose(elements: Locator, random: Random): Promise<Locator | undefined> {
  const count = await elements.count();
  return count === 0 ? undefined : elements.nth(Math.floor(random() * count));
}

/** Press where an element is, even if it moves, is locked or is covered: false if it is gone. */
async function press(element: Locator | undefined, clickCount = 1): Promise<boolean> {
  if (element === undefined) return false;
  const { mouse } = element.page();
  try {
    await element.scrollIntoViewIfNeeded({ timeout: PATIENCE });
    const box = await element.boundingBox({ timeout: PATIENCE });
    if (box === null) return false;
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await mouse.move(x, y, { steps: 3 });
    await mouse.click(x, y, { clickCount, delay: 10 });
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** Fill a field as a person types; false if it is gone. */
async function fill(field: Locator, text: string): Promise<boolean> {
  try {
    await field.fill(text, { timeout: PATIENCE });
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** Whether an element was not there any more when it was used. */
export function isGone(error: unknown): boolean {
  return error instanceof Error && /Timeout|not attached|detached/.test(error.message);
}

function pressing(name: string | RegExp, clickCount = 1): Action {
  return async (scene, random) =>
    press(await choose(main(scene).getByRole("button", { name, exact: true }), random), clickCount);
}

const cards = (scene: Scene) => main(scene).locator("[data-approval][data-open]");

/** One of the open cards, after a running answer had time to ask; undefined if there is none. */
async function chooseCard(scene: Scene, random: Random): Promise<Locator | undefined> {
  if ((await main(scene).getByRole("button", { name: "Stop" }).count()) > 0) {
    await cards(scene)
      .first()
      .waitFor({ timeout: PATIENCE })
      .catch(() => {});
  }
  return choose(cards(scene), random);
}

/** An action that a person takes in place of another one without an opportunity. */
function orElse(action: Action, other: Action): Action {
  return async (scene, random) => (await action(scene, random)) || other(scene, random);
}

/** Press a button of a card, fill its form, and press the button that sends it, or cancel. */
function deciding(
  button: string,
  complete: (form: Locator, scene: Scene, random: Random) => Promise<void>,
  send: string,
): Action {
  return async (scene, random) => {
    const card = await chooseCard(scene, random);
    if (card === undefined) return false;
    if (!(await press(card.getByRole("button", { name: button })))) return false;
    const form = card.getByRole("group");
    await complete(form, scene, random);
    if (random() < 0.8) await pause(pageOf(scene), ARRIVAL);
    const isSent = random() < 0.85;
    return press(form.getByRole("button", { name: isSent ? send : "Cancel" }));
  };
}

/** Other values than the requested ones; some are not valid. */
async function changeArguments(form: Locator, _: Scene, random: Random): Promise<void> {
  const field = form.getByRole("textbox", { name: /^(?:amount|rows)$/ });
  const value = Math.floor(random() * 90_000) + 10_000;
  if (random() < 0.15) await fill(field, `${value} coins`);
  else if (random() < 0.8) await fill(field, String(value));
  else await fill(form.getByRole("textbox").first(), `Other ${value}`);
}

async function send(scene: Scene, random: Random): Promise<boolean> {
  scene.task += 1;
  const isWritten = await fill(composer(scene), taskText(scene.task));
  if (!isWritten) return false;
  if (random() < 0.7) await composer(scene).press("Enter");
  else await press(main(scene).getByRole("button", { name: "Send" }).last());
  return true;
}

async function stop(scene: Scene, random: Random): Promise<boolean> {
  const button = main(scene).getByRole("button", { name: "Stop" });
  if ((await button.count()) === 0) return false;
  if (random() < 0.8) await pause(pageOf(scene), ARRIVAL);
  return press(await choose(button, random));
}

async function editMessage(scene: Scene, random: Random): Promise<boolean> {
  const pencils = main(scene).getByRole("button", { name: "Edit your message" });
  if (!(await press(await choose(pencils, random)))) return false;
  const field = main(scene).getByRole("textbox", { name: "Edit your message" }).first();
  scene.task += 1;
  if (!(await fill(field, taskText(scene.task)))) return false;
  const editor = main(scene).locator(".message-editor").first();
  return press(editor.getByRole("button", { name: random() < 0.8 ? "Send" : "Cancel" }));
}

/** Type keys into whatever has the focus, or into a card. */
async function typeKeys(scene: Scene, random: Random): Promise<boolean> {
  const page = pageOf(scene);
  const card = await choose(cards(scene), random);
  if (card !== undefined && random() < 0.7) await card.focus({ timeout: PATIENCE }).catch(() => {});
  const keys = ["a", "d", "e", "Enter", "Escape", "Tab", "Tab", "Space", "x", "Shift+Tab"];
  for (let count = 1 + Math.floor(random() * 6); count > 0; count -= 1) {
    await page.keyboard.press(keys[Math.floor(random() * keys.length)] as string);
    if (random() < 0.3) await pause(page, random() * ARRIVAL);
  }
  return true;
}

/** Any button or link of the page, except those that delete a chat, or change the transport or the user. */
function clickAnything(clickCount: number): Action {
  return async (scene, random) => {
    const page = pageOf(scene);
    const dialog = page.getByRole("dialog");
    const root = (await dialog.count()) > 0 ? dialog.last() : page.locator("body");
    const controls = root
      .locator("button:visible, a[href^='?']:visible, summary:visible")
      .filter({ hasNotText: /^(?:Delete for good$|Continue as )/ });
    return press(await choose(controls, random), clickCount);
  };
}

/** Any place of the window. */
async function clickAnywhere(scene: Scene, random: Random): Promise<boolean> {
  const { width, height } = pageOf(scene).viewportSize() ?? { width: 800, height: 600 };
  await pageOf(scene).mouse.click(random() * width, random() * height);
  return true;
}

async function switchChat(scene: Scene, random: Random): Promise<boolean> {
  const links = pageOf(scene).getByRole("list", { name: "Chats" }).getByRole("link");
  const recent = Math.min(4, await links.count());
  return recent > 0 && press(links.nth(Math.floor(random() * recent)));
}

async function newChat(scene: Scene): Promise<boolean> {
  return press(pageOf(scene).getByRole("button", { name: "New chat" }).first());
}

/** The chat before; false if the browser would leave the page. */
async function goBack(scene: Scene): Promise<boolean> {
  if (scene.watch.isOffline) return false;
  const page = pageOf(scene);
  const canGoBack = await page.evaluate(
    () => (window as unknown as { navigation: { canGoBack: boolean } }).navigation.canGoBack,
  );
  // What is evaluated in a page ends with it.
  if (canGoBack) await page.goBack({ waitUntil: "commit" });
  return canGoBack;
}

/** The other tab, with the same chat if it has another one. */
async function switchTab(scene: Scene, random: Random): Promise<boolean> {
  const chat = chatOf(pageOf(scene));
  scene.tab = (scene.tab + 1) % scene.tabs.length;
  await pageOf(scene).bringToFront();
  if (chatOf(pageOf(scene)) !== chat && random() < 0.7 && !scene.watch.isOffline) {
    await pageOf(scene).goto(`/?chat=${chat}`);
  }
  return true;
}

/** Both tabs decide at the same time. */
async function decideInBothTabs(scene: Scene, random: Random): Promise<boolean> {
  const [one, other] = scene.tabs as [Page, Page];
  const approve = one.getByRole("button", { name: "Approve", exact: true });
  if ((await approve.count()) === 0) return false;
  const name = random() < 0.5 ? "Approve" : /^Approve all/;
  const buttons = other.getByRole("button", { name, exact: true });
  const pressed = await Promise.all([press(approve.first()), press(buttons.first())]);
  return pressed.some(Boolean);
}

async function reload(scene: Scene): Promise<boolean> {
  // Without a network the browser would leave the page.
  if (scene.watch.isOffline) return false;
  await pageOf(scene).reload({ waitUntil: "commit" });
  return true;
}

async function cut(scene: Scene, random: Random): Promise<boolean> {
  if (scene.watch.isOffline) return false;
  scene.watch.isOffline = true;
  scene.network.cut();
  if (random() < 0.5) {
    await pause(pageOf(scene), random() * 500);
    await reconnect(scene);
  }
  return true;
}

export async function reconnect(scene: Scene): Promise<boolean> {
  if (!scene.watch.isOffline) return false;
  scene.network.restore();
  // The errors of the last requests are on their way, and arrive before the end of another one.
  const request = () =>
    fetch("/healthz").then(
      () => 0,
      () => 0,
    );
  // What is evaluated in a page ends with it.
  await Promise.all(scene.tabs.map((page) => page.evaluate(request).catch(() => {})));
  scene.watch.isOffline = false;
  return true;
}

/** Another release policy, by the developer tools. */
async function chooseRelease(scene: Scene, random: Random): Promise<boolean> {
  if (scene.watch.isOffline) return false;
  const page = pageOf(scene);
  await press(page.getByRole("button", { name: "Developer tools", exact: true }));
  const select = page.getByRole("combobox", { name: "Release" });
  const names = ["deferred", "preview", "progressive"];
  const value = names[Math.floor(random() * names.length)] as string;
  await select.selectOption(value, { timeout: PATIENCE }).catch(() => {});
  await press(page.getByRole("button", { name: "Close the developer tools" }));
  return true;
}

function approving(clickCount: number): Action {
  return async (scene, random) => {
    const card = await chooseCard(scene, random);
    if (card === undefined) return false;
    if (random() < 0.8) await pause(pageOf(scene), ARRIVAL);
    return press(card.getByRole("button", { name: "Approve", exact: true }), clickCount);
  };
}

const approve = approving(1);
const approveTwice = approving(2);
const deny = deciding(
  "Deny",
  async (form, _, random) => {
    if (random() < 0.5) await fill(form.getByRole("textbox"), "Not today.");
  },
  "Deny",
);
const edit = deciding("Edit", changeArguments, "Approve with changes");
const remember = deciding(
  "Do not ask again…",
  async (form, _, random) => {
    if (random() < 0.3) await press(form.getByRole("radio", { name: /^This tool/ }));
  },
  "Approve and do not ask again",
);

/** The actions, with how often each occurs in a deck. */
const ACTIONS = {
  send: [6, send],
  approve: [9, orElse(approve, send)],
  approveTwice: [2, orElse(approveTwice, send)],
  approveAll: [1, pressing(/^Approve all/)],
  approveInBothTabs: [2, decideInBothTabs],
  deny: [3, deny],
  edit: [4, orElse(edit, send)],
  remember: [1, remember],
  typeKeys: [3, typeKeys],
  retry: [2, pressing(/^(?:Retry|Try again)$/)],
  stop: [2, stop],
  answerAgain: [2, pressing(/^Answer again/)],
  editMessage: [2, editMessage],
  clickAnything: [2, clickAnything(1)],
  doubleClickAnything: [1, clickAnything(2)],
  clickAnywhere: [1, clickAnywhere],
  cut: [2, cut],
  reconnect: [2, reconnect],
  reload: [2, reload],
  switchChat: [1, switchChat],
  newChat: [1, newChat],
  goBack: [1, goBack],
  switchTab: [3, switchTab],
  chooseRelease: [1, chooseRelease],
} as const satisfies Record<string, readonly [count: number, action: Action]>;

export type ActionName = keyof typeof ACTIONS;

/** The names of the actions of a deck. */
export const DECK: readonly ActionName[] = Object.entries(ACTIONS).flatMap(([name, [count]]) =>
  Array<ActionName>(count).fill(name as ActionName),
);

/** Do an action; false if the page offers no opportunity for it. */
export async function act(name: ActionName, scene: Scene, random: Random): Promise<boolean> {
  return ACTIONS[name][1](scene, random);
}
