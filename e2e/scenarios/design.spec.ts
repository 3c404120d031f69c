import { expect, test } from "./fixtures.ts";

test("a denial is as strong as an approval, and its reason is asked for afterwards", async ({
  chat,
}) => {
  await chat.open();
  await chat.send("Pay Ada 50 euros");
  const card = chat.card("Send money");
  await expect(card.getByRole("button", { name: "Approve", exact: true })).toBeEnabled();
  // Both are read at once: the thread may be scrolling.
  const looks = await card
    .getByRole("button", { name: /^(Approve|Deny)$/ })
    .evaluateAll((buttons) =>
      buttons.map((button) => {
        const { fontSize, fontWeight, borderTopWidth } = getComputedStyle(button);
        const { height, top } = button.getBoundingClientRect();
        return { fontSize, fontWeight, borderTopWidth, height, top };
      }),
    );
  expect(looks).toHaveLength(2);
  expect(looks[0]).toEqual(looks[1]);
  await expect(card.getByRole("textbox")).toHaveCount(0);
  await card.getByRole("button", { name: "Deny", exact: true }).click();
  const reason = card.getByRole("textbox", { name: "Reason for denying (optional)" });
  await expect(reason).toBeFocused();
  await card
    .getByRole("group", { name: "Deny the call" })
    .getByRole("button", { name: "Deny" })
    .click();
  await expect(chat.tool("Send money")).toContainText("denied");
  await chat.waitForEnd();
});

test("nothing moves fast for a person who wants less motion", async ({ chat }) => {
  await chat.page.emulateMedia({ reducedMotion: "no-preference" });
  await chat.open();
  await chat.send("Think about it for ever");
  await expect(chat.answer).toContainText("will not stop by myself");
  /** The periods of the movements, in milliseconds. */
  const periods = () =>
    chat.page.evaluate(() =>
      document
        .getAnimations()
        .map(({ effect }) => Number(effect?.getTiming().duration))
        .concat(
          [...document.querySelectorAll("button")].map(
            (button) => Number.parseFloat(getComputedStyle(button).transitionDuration) * 1_000,
          ),
        )
        .filter((duration) => duration > 0),
    );
  expect(Math.min(...(await periods()))).toBeLessThan(1_500);
  // A transition that has begun, as this one, ends with the duration that it has.
  await chat.page.getByRole("button", { name: "Stop" }).hover();
  await chat.page.emulateMedia({ reducedMotion: "reduce" });
  await chat.page.evaluate(() =>
    Promise.allSettled(
      document
        .getAnimations()
        .filter((animation) => animation instanceof CSSTransition)
        .map(({ finished }) => finished),
    ),
  );
  expect(Math.min(...(await periods()))).toBe(4_000);
  await chat.page.getByRole("button", { name: "Stop" }).click();
  await chat.waitForEnd();
});
