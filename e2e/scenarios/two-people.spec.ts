import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "@playwright/test";
import { accessibilityViolations } from "./accessibility.ts";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";
import { expect, test } from "./fixtures.ts";

/** Milliseconds in which another person sees what somebody did. */
const SOON = 1_000;

const AGENT = `
import json, os

from google.adk.agents import LlmAgent

from sluicegate.tools import Role, gated


def pay(recipient: str, amount: float) -> dict:
    """Pay an amount in euros to a recipient."""
    with open(os.environ["SLUICEGATE_EFFECTS"], "a") as effects:
        effects.write(json.dumps({"recipient": recipient, "amount": amount}) + "\\n")
    return {"paid": amount}


root_agent = LlmAgent(
    name="cashier",
    model="scripted",
    tools=[gated(pay, approvers=["bob", Role("finance")], quorum=2)],
)
`;
const CALL = { call: { name: "pay", args: { recipient: "Ada", amount: 5_000 } } };
const SCRIPT = {
  scenarios: [
    { match: ".", responses: [{ parts: [CALL] }, { parts: [{ text: "It is settled." }] }] },
  ],
};
const ROLES = { ann: "", bob: "", cat: "finance", eve: "auditor" };
type Person = keyof typeof ROLES;

let folder: string;
let server: DemoServer;

test.beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sluicegate-people-"));
  const [agent, script, tokens] = ["agent.py", "script.json", "tokens"].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  writeFileSync(agent, AGENT);
  writeFileSync(script, JSON.stringify(SCRIPT));
  const lines = Object.entries(ROLES).map(([person, roles]) => {
    const digest = createHash("sha256").update(`token-of-${person}`).digest("hex");
    return `sha256:${digest} ${person} ${roles}\n`;
  });
  writeFileSync(tokens, lines.join(""));
  const options = ["--model-script", script, "--auth", `bearer:${tokens}`];
  server = await DemoServer.serve(`${agent}:root_agent`, ...options);
});

test.afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** A browser of a person who has signed in, whose page is changed by events alone. */
async function signedIn(browser: Browser, person: Person): Promise<Page> {
  const context = await browser.newContext();
  const headers = { authorization: `Bearer token-of-${person}`, origin: server.url };
  const response = await context.request.post(`${server.url}/api/session`, { headers });
  expect(response.ok()).toBe(true);
  const page = await context.newPage();
  await page.addInitScript(() => {
    const { setInterval } = window;
    const withoutLong = (handler: TimerHandler, milliseconds?: number, ...given: unknown[]) =>
      (milliseconds ?? 0) >= 30_000 ? 0 : setInterval(handler, milliseconds, ...given);
    window.setInterval = withoutLong as typeof setInterval;
  });
  return page;
}

/** Note in the report how long something took since a moment. */
function note(what: string, start: number): void {
  const description = `${what}: ${Math.round(performance.now() - start)} ms of ${SOON} ms`;
  test.info().annotations.push({ type: "latency", description });
  process.stdout.write(`${description}\n`);
}

/** The card of the payment on a page, in a chat or in the inbox. */
const cardOn = (page: Page) => page.getByRole("region", { name: "Approval: pay" });

const buttonOn = (page: Page, name: string) =>
  cardOn(page).getByRole("button", { name, exact: true });

for (const transport of ["sse", "websocket"] as const) {
  test(`two people approve in the inbox, and the chat of the requester goes on, ${transport}`, async ({
    browser,
  }) => {
    const [ann, bob, cat] = await Promise.all([
      signedIn(browser, "ann"),
      signedIn(browser, "bob"),
      signedIn(browser, "cat"),
    ]);
    const before = (await server.effects()).length;
    const chat = await new ChatPage(ann, server).open({ transport });
    // The inbox of Cat, who may decide by a role, is open before Ann asks.
    await cat.goto(`${server.url}/inbox`);
    await expect(cat.getByText("Nothing waits for you.")).toBeVisible();
    const start = performance.now();
    await chat.send("Pay Ada 5000 euros");
    await cat.getByRole("list", { name: "Waiting approvals" }).getByRole("link").click();
    note(`${transport}: a holder of the role opens the card after the message`, start);
    const asked = cardOn(ann);
    await expect(asked).toContainText("2 approvals are missing.");
    await expect(asked).toContainText("This call waits for finance or bob.");
    const id = await asked.getAttribute("data-approval");
    const path = `${server.url}/api/approvals/${id}`;

    // Bob finds it in the inbox. Cat has it open, so she sees what he does.
    await expect(cat).toHaveURL(`${server.url}/inbox/${id}`);
    await bob.goto(`${server.url}/inbox`);
    await bob
      .getByRole("list", { name: "Waiting approvals" })
      .locator(`a[href$="/inbox/${id}"]`)
      .click();
    await expect(cardOn(bob)).toContainText("Ada");
    const headers = { origin: server.url };
    const seen = (await (await bob.request.get(path, { headers })).json()) as { digest: string };
    await buttonOn(bob, "Approve").click();
    for (const page of [ann, cat]) {
      await expect(cardOn(page)).toContainText("bob approved");
      await expect(cardOn(page)).toContainText("1 approval is missing.");
    }

    // Cat changes the amount: the approval of Bob was for another one.
    await buttonOn(cat, "Edit").click();
    await cardOn(cat).getByRole("textbox", { name: "amount" }).fill("40");
    await buttonOn(cat, "Approve with changes").click();
    for (const page of [ann, bob]) {
      await expect(cardOn(page)).toContainText("bob approved what was changed since");
      await expect(cardOn(page)).toContainText("cat changed the call and approved");
    }
    await expect(asked).toContainText("40");

    // Wrong answers: of a person who may not decide, and on what was seen before the change.
    for (const [person, data, status, code] of [
      [ann, { approved: true }, 403, "not_entitled"],
      [bob, { approved: true, digest: seen.digest }, 409, "changed"],
      [cat, { approved: false }, 409, "already_decided"],
    ] as const) {
      const refused = await person.request.post(path, { data, headers });
      expect(refused.status()).toBe(status);
      expect(refused.headers()["x-error-code"]).toBe(code);
      expect(await refused.text()).toMatch(/^[A-Z].*\.$/);
    }
    await expect(asked).toContainText("1 approval is missing.");
    await expect(buttonOn(ann, "Approve")).toHaveAttribute("aria-disabled", "true");
    expect(await server.effects()).toHaveLength(before);
    expect(await accessibilityViolations(ann)).toEqual([]);

    // The last yes: the page of Ann goes on by itself.
    await expect(buttonOn(bob, "Approve")).not.toHaveAttribute("aria-disabled");
    const last = performance.now();
    await buttonOn(bob, "Approve").click();
    await expect(asked).toHaveCount(0);
    note(`${transport}: the chat goes on after the last yes`, last);
    await expect(chat.answer).toContainText("It is settled.");
    await chat.waitForEnd();
    await expect(chat.tool("pay")).toContainText("done");
    await expect(bob.getByText("— approved, done, by cat and bob")).toBeVisible();
    // Bob may not open the chat.
    await expect(bob.getByRole("link", { name: "Open the chat" })).toHaveCount(0);
    const paid = (await server.effects()).slice(before).map((line) => JSON.parse(line));
    expect(paid).toEqual([{ recipient: "Ada", amount: 40 }]);
    await Promise.all([ann, bob, cat].map((page) => page.context().close()));
  });
}

test("an auditor sees the card and the history of everybody, and decides nothing", async ({
  browser,
}) => {
  const [ann, eve] = await Promise.all([signedIn(browser, "ann"), signedIn(browser, "eve")]);
  const chat = await new ChatPage(ann, server).open();
  await chat.send("Pay Ada 5000 euros");
  const id = await cardOn(ann).getAttribute("data-approval");
  await eve.goto(`${server.url}/inbox/${id}`);
  await expect(cardOn(eve)).toContainText("This call waits for finance or bob.");
  for (const name of ["Approve", "Deny"]) {
    await expect(buttonOn(eve, name)).toHaveAttribute("aria-disabled", "true");
    await buttonOn(eve, name).click({ force: true });
  }
  await cardOn(eve).focus();
  for (const key of ["a", "d", "Enter"]) await eve.keyboard.press(key);
  await expect(cardOn(eve)).toContainText("2 approvals are missing.");
  const refused = await eve.request.post(`${server.url}/api/approvals/${id}`, {
    data: { approved: false },
    headers: { origin: server.url },
  });
  expect(refused.status()).toBe(403);
  await eve.getByRole("link", { name: "History" }).click();
  await expect(eve.getByRole("columnheader", { name: "For" })).toBeVisible();
  await expect(eve.getByRole("cell", { name: "ann", exact: true }).first()).toBeVisible();
  await expect(eve.getByText("every line of the audit trail is as it was")).toBeVisible();
  expect(await accessibilityViolations(eve)).toEqual([]);
  await ann.goto(`${server.url}/inbox?view=history`);
  await expect(ann.getByRole("cell", { name: "requested" }).first()).toBeVisible();
  await expect(ann.getByRole("columnheader", { name: "For" })).toHaveCount(0);
  await Promise.all([ann, eve].map((page) => page.context().close()));
});
