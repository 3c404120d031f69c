import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, inject, it } from "vitest";
import { Conversation } from "../harness/conversation.ts";
import { GOLDENS } from "./conversations.ts";

/** More than any conversation posts: nobody reads along. */
const MANY = 50;

describe.concurrent("what is kept", () => {
  it.each(GOLDENS)("$name", async ({ name, combination, posts, tell }) => {
    const place = inject("places")[combination.style];
    const talk = new Conversation({ place, combination, posts: MANY, chatId: name });
    await tell(talk);
    await talk.rests(posts);
    const { messages } = await talk.history();
    await writeFile(join(inject("folder"), `${name}.messages.json`), JSON.stringify(messages));
  });
});
