import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, type Page } from "@playwright/test";
import { freePort } from "../demo-server.ts";
import { blocks, test } from "./new-user.ts";

/** Ask on the page that the server itself serves, and approve. */
async function payOnChatPage(page: Page, port: number, outcome: string): Promise<void> {
  await page.goto(`http://127.0.0.1:${port}`);
  const message = page.getByRole("textbox", { name: "Message" });
  await message.fill("Pay Ada 5 euros");
  await message.press("Enter");
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await expect(page.getByRole("main")).toContainText(outcome);
}

test("with a key, the server pays once the card on its page is approved", async ({
  page,
  user,
}) => {
  const { port } = await user.serveModel();

  await payOnChatPage(page, port, "Ada is paid.");
});

test("the page under Vite allows the call, and the answer appears", async ({ page, user }) => {
  const { port } = await user.serveModel();
  await page.goto(await user.page(port));

  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByRole("button", { name: "Allow pay" }).click();

  await expect(page.getByText("Ada is paid.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Allow pay" })).toHaveCount(0);
});

test("a key that the provider does not know is named in the log, and the page shows an error", async ({
  page,
  user,
}) => {
  const { port, service } = await user.serveModel("invalid-key");
  await page.goto(await user.page(port));

  await page.getByRole("button", { name: "Ask" }).click();

  await expect(page.getByRole("alert")).toContainText("error");
  await expect.poll(() => service.output).toContain("API key not valid");
  expect(service.output).toContain("The key is in GOOGLE_API_KEY.");
  expect(service.output).not.toContain("Traceback");
  expect(await page.content()).not.toContain("API key not valid");
});

test("without a key, the server of the README says so at its start", async ({ user }) => {
  await writeFile(join(user.home, "server.py"), blocks("python").join(""));
  const port = await freePort();

  const server = await user.start(
    ["uvicorn", "server:app", "--port", String(port)],
    new RegExp(`http://127\\.0\\.0\\.1:${port}`),
  );

  expect(server.output).toContain("GOOGLE_API_KEY");
});

test("without a key, a new project pays once its card is approved", async ({ page, user }) => {
  const { port } = await user.serve("sluicegate dev");

  await payOnChatPage(page, port, "Ada");
});
