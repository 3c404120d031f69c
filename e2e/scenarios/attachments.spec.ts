import type { ChatPage } from "./chat-page.ts";
import { expect, test } from "./fixtures.ts";

/** One red pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/** Paste an image into the composer, or drop it there. */
async function give({ message }: ChatPage, kind: "paste" | "drop"): Promise<void> {
  await message.evaluate(
    (element, [kind, base64]) => {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      const data = new DataTransfer();
      data.items.add(new File([bytes], "pixel.png", { type: "image/png" }));
      const options = { bubbles: true, cancelable: true };
      if (kind === "paste") {
        element.dispatchEvent(new ClipboardEvent("paste", { ...options, clipboardData: data }));
        return;
      }
      for (const type of ["dragover", "drop"]) {
        element.dispatchEvent(new DragEvent(type, { ...options, dataTransfer: data }));
      }
    },
    [kind, PIXEL] as const,
  );
}

for (const transport of ["sse", "websocket"] as const) {
  for (const kind of ["paste", "drop"] as const) {
    test(`an image by ${kind} has a preview, and is a thumbnail in its message, ${transport}`, async ({
      chat,
    }) => {
      await chat.open({ transport });
      await give(chat, kind);
      const list = chat.page.getByRole("list", { name: "Attached files" });
      await expect(list.getByText("pixel.png")).toBeVisible();
      const isLoaded = (image: HTMLImageElement) => image.naturalWidth > 0;
      await expect.poll(() => list.locator("img").evaluate(isLoaded)).toBe(true);
      await chat.send("Hello!");
      await chat.waitForEnd();
      await expect(list).toHaveCount(0);
      const message = chat.log.getByRole("article", { name: "You" });
      for (const _ of ["live", "stored"]) {
        await expect.poll(() => message.getByRole("img").evaluate(isLoaded)).toBe(true);
        await chat.page.reload();
      }
    });
  }
}
