import { join } from "node:path";
import { expect, test } from "../fixtures.ts";

const FOLDER = join(import.meta.dirname, "../../../docs/images");

test.use({ viewport: { width: 1000, height: 680 }, colorScheme: "light" });

test("the approval card in the README", async ({ chat }) => {
  await chat.open();
  await chat.send("Pay Ada 50 euros");
  await expect(chat.card("Send money").getByRole("button", { name: "Approve" })).toBeEnabled();
  await expect(chat.page.getByRole("link", { name: /^Pay Ada 50 euros/ })).toBeVisible();
  await chat.page.screenshot({ path: join(FOLDER, "approval-card.png"), animations: "disabled" });
});
