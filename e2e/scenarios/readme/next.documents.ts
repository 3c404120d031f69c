import { expect } from "@playwright/test";
import { test } from "./new-user.ts";

test("the page under Next.js allows the call, and its stream is not compressed", async ({
  page,
  user,
}) => {
  test.setTimeout(600_000);
  const { port } = await user.serveModel();
  await page.goto(await user.nextPage(port));

  const responding = page.waitForResponse(/\/api\/chat$/);
  await page.getByRole("button", { name: "Ask" }).click();
  const headers = await (await responding).allHeaders();
  await page.getByRole("button", { name: "Allow pay" }).click();

  await expect(page.getByText("Ada is paid.")).toBeVisible();
  expect(headers["content-type"]).toBe("text/event-stream");
  expect(headers["content-encoding"]).toBeUndefined();
});
