import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessibilityViolations } from "./accessibility.ts";
import { ChatPage } from "./chat-page.ts";
import { DemoServer } from "./demo-server.ts";
import { test as base, expect } from "./fixtures.ts";

const TOKEN = "the-token-of-ada";

interface Fixtures {
  /** A server with a token for one user, and a theme. */
  readonly signedServer: DemoServer;
}

const test = base.extend<Fixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright requires the pattern to find the dependencies of a fixture.
  signedServer: async ({}, use) => {
    const folder = await mkdtemp(join(tmpdir(), "sluicegate-sign-in-"));
    const tokens = join(folder, "tokens");
    const digest = createHash("sha256").update(TOKEN).digest("hex");
    await writeFile(tokens, `sha256:${digest} ada\n`);
    const stylesheet = join(folder, "theme.css");
    await writeFile(stylesheet, ":root { --color-accent: light-dark(#6d28d9, #c4b5fd); }");
    const logo = join(folder, "logo.svg");
    const shape = '<circle cx="8" cy="8" r="8" onload="document.title = 1" />';
    await writeFile(logo, `<svg xmlns="http://www.w3.org/2000/svg">${shape}</svg>`);
    const server = await DemoServer.start(
      ...["--auth", `bearer:${tokens}`, "--title", "Acme <b>pays</b>", "--logo", logo],
      ...["--welcome", "What should be paid?", "--page-stylesheet", stylesheet],
      ...["--suggestion", "Pay Ada 50 euros"],
    );
    await use(server);
    await server.close();
    await rm(folder, { recursive: true });
  },
});

test("a person signs in to the page of a team, and out in every tab", async ({
  page,
  signedServer,
}) => {
  await page.goto(signedServer.url);
  await expect(page).toHaveTitle("Acme <b>pays</b>");
  await expect(page.getByRole("heading", { name: "Sign in to Acme <b>pays</b>" })).toBeVisible();
  await expect(page.getByRole("button", { name: "New chat" })).toHaveCount(0);
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByRole("textbox", { name: "Token" }).fill(TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();

  await expect(page.getByRole("heading", { name: "What should be paid?" })).toBeVisible();
  await expect(page.getByTitle("ada")).toBeVisible();
  await page.emulateMedia({ colorScheme: "light" });
  await expect(page.getByRole("button", { name: "New chat" })).toHaveCSS(
    "background-color",
    "rgb(109, 40, 217)",
  );
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByRole("button", { name: "Pay Ada 50 euros" }).click();
  const chat = new ChatPage(page, signedServer);
  await expect(chat.cards).toHaveCount(1);

  const otherTab = await page.context().newPage();
  const other = new ChatPage(otherTab, signedServer);
  await other.open({}, chat.query);
  await expect(other.cards).toHaveCount(1);
  await page.getByRole("button", { name: "Sign out" }).click();
  for (const tab of [page, otherTab]) {
    await expect(tab.getByRole("textbox", { name: "Token" })).toBeVisible();
    await expect(tab.getByText("Send money")).toHaveCount(0);
  }
  expect(await page.context().cookies()).toEqual([]);
});

for (const path of ["", "inbox"]) {
  test(`a token stays in its field when the person comes back to the page, /${path}`, async ({
    page,
    signedServer,
  }) => {
    await page.goto(`${signedServer.url}/${path}`);
    const token = page.getByRole("textbox", { name: "Token" });
    await token.fill(TOKEN);
    // The page asks for its list again, and the server refuses it again.
    const refusal = page.waitForResponse(/api\/(chats|approvals)\?/);
    await page.evaluate(() => dispatchEvent(new Event("visibilitychange")));
    await (await refusal).finished();
    await page.evaluate(() => new Promise(requestAnimationFrame));
    await expect(token).toHaveValue(TOKEN);
    await expect(token).toBeFocused();
  });
}

for (const transport of ["sse", "websocket"] as const) {
  test(`what a person writes survives a lost cookie, ${transport}`, async ({
    page,
    signedServer,
  }) => {
    const signIn = async () => {
      await page.getByRole("textbox", { name: "Token" }).fill(TOKEN);
      await page.getByRole("button", { name: "Sign in" }).click();
    };
    await page.addInitScript(
      (value) => localStorage.setItem("sluicegate.transport", value),
      transport,
    );
    await page.goto(signedServer.url);
    await signIn();
    const chat = new ChatPage(page, signedServer);
    await chat.send("Hello!");
    await chat.waitForEnd();
    await chat.message.fill("a draft");
    await page.context().clearCookies();
    await page.reload();
    await signIn();
    await expect(chat.message).toHaveValue("a draft");
    await expect(page.getByRole("button", { name: "Send", exact: true })).toBeEnabled();
    // A message over a socket that is still open is not refused.
    if (transport === "sse") {
      await page.route("**/api/chat", async (route) => {
        await page.context().clearCookies();
        await route.continue({ headers: { ...route.request().headers(), cookie: "" } });
      });
      await chat.message.press("Enter");
      await signIn();
      await page.unroute("**/api/chat");
      await expect(chat.message).toHaveValue("a draft");
    }
    // On a busy machine the first answer may still be resumed.
    await expect(page.getByRole("button", { name: "Send", exact: true })).toBeEnabled();
    await chat.message.press("Enter");
    await expect(chat.log.getByRole("article", { name: "You" })).toHaveCount(2);
  });
}

test("a link to an approval asks for the token, and then shows it", async ({
  page,
  browser,
  signedServer,
}) => {
  await page.goto(signedServer.url);
  await page.getByRole("textbox", { name: "Token" }).fill(TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  const chat = new ChatPage(page, signedServer);
  await chat.send("Pay Ada 50 euros");
  await expect(chat.card("Send money")).toBeVisible();
  const id = await chat.card("Send money").getAttribute("data-approval");
  const context = await browser.newContext();
  const other = await context.newPage();
  await other.goto(`${signedServer.url}/inbox/${id}`);
  await expect(other).toHaveTitle(/Acme <b>pays<\/b>$/);
  await expect(other.getByRole("heading", { name: "Sign in to Acme <b>pays</b>" })).toBeVisible();
  await expect(other.getByText("Ada")).toHaveCount(0);
  await other.getByRole("textbox", { name: "Token" }).fill(TOKEN);
  await other.getByRole("button", { name: "Sign in" }).click();
  await expect(other.getByRole("region", { name: "Approval: Send money" })).toContainText("Ada");
  await expect(other.getByTitle("ada")).toBeVisible();
  // The logo and the stylesheet of the settings are found from below the page of the chats.
  const logo = other.locator("img.logo");
  await expect
    .poll(() => logo.evaluate((image: HTMLImageElement) => image.naturalWidth))
    .toBeGreaterThan(0);
  await other.emulateMedia({ colorScheme: "light" });
  await expect(other.getByRole("button", { name: "Approve", exact: true })).toHaveCSS(
    "background-color",
    "rgb(109, 40, 217)",
  );
  await context.close();
});
