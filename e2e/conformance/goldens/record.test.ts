import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, inject, it } from "vitest";
import { ClientTab } from "../harness/client-tab.ts";
import { GOLDENS } from "./conversations.ts";

/** More posts than any conversation has, so that no second reader resumes. */
const NO_READER = 50;

describe.concurrent("goldens", () => {
  it.each(GOLDENS)("$name", async ({ name, combination, posts, run }) => {
    const server = inject("servers")[combination.style];
    const tab = new ClientTab({ server, combination, posts: NO_READER, chatId: name });
    await run(tab);
    await tab.waitForPosts(posts);
    const { messages } = await tab.loadChat();
    await writeFile(join(inject("folder"), `${name}.messages.json`), JSON.stringify(messages));
  });
});
