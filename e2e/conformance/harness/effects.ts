import { readFile } from "node:fs/promises";
import type { Place } from "./servers.ts";

/** One run of a tool's body, as the tool noted it outside the server. */
export interface Effect {
  readonly chat: string;
  readonly tool: string;
  readonly args: Record<string, unknown>;
}

/** What the tools have really done in one chat, in order. */
export async function effectsOf(place: Place, chatId: string): Promise<Effect[]> {
  let noted: string;
  try {
    noted = await readFile(place.effects, "utf8");
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw fault;
  }
  return noted
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Effect)
    .filter((effect) => effect.chat === chatId);
}
