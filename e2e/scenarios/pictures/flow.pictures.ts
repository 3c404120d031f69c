import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "../fixtures.ts";

const FOLDER = join(import.meta.dirname, "../../../build/pictures/flow");
const QUESTION = "Pay Ada 50 euros";

test.use({ viewport: { width: 960, height: 680 }, colorScheme: "light" });

test("the frames of the moving picture in the README", async ({ chat }) => {
  let count = 0;
  /** Take a frame; its name has its order and the milliseconds for which it is shown. */
  async function frame(milliseconds: number): Promise<void> {
    count += 1;
    const name = `${String(count).padStart(2, "0")}-${milliseconds}.png`;
    await chat.page.screenshot({ path: join(FOLDER, name), animations: "disabled" });
  }
  await rm(FOLDER, { recursive: true, force: true });
  await mkdir(FOLDER, { recursive: true });
  await chat.open();
  const message = chat.page.getByRole("textbox", { name: "Message" });
  await message.focus();
  await frame(800);
  for (const word of QUESTION.split(/(?= )/)) {
    await message.pressSequentially(word);
    await frame(250);
  }
  await frame(500);
  await message.press("Enter");
  const approve = chat.card("Send money").getByRole("button", { name: "Approve" });
  await expect(approve).toBeEnabled();
  await expect(chat.page.getByRole("link", { name: /^Pay Ada 50 euros/ })).toBeVisible();
  await chat.page.mouse.move(0, 0);
  await frame(2500);
  await approve.hover();
  await frame(900);
  await approve.click();
  await expect(chat.page.getByText(/payment is settled/)).toBeVisible();
  await chat.page.mouse.move(0, 0);
  await frame(3500);
});
