import { describe, inject, it } from "vitest";
import { Conversation } from "./conversation.ts";
import { type Ending, endingFaults, historyFaults } from "./ending.ts";
import { type Combination, EVERYWHERE, nameOf, type Rule } from "./matrix.ts";
import type { Message } from "./messages.ts";

const QUIET = 300;
const LONG_QUIET = 2_000;

/** A conversation with the checks that every story makes. */
export class Talk extends Conversation {
  #quiet = QUIET;

  /** Whether to look for two seconds, once per story, that an idle client sends nothing. */
  looksLonger(): void {
    this.#quiet = LONG_QUIET;
  }

  /**
   * Wait for the last post's end and check all there is to check: posts, messages, effects, each
   * chunk, the rules of the release, the stored history, the second reader, and silence after.
   */
  async ends(ending: Ending): Promise<void> {
    await this.rests(this.expectedPosts);
    const [faults] = await Promise.all([endingFaults(this, ending), this.staysQuiet(this.#quiet)]);
    this.#refuse(faults);
  }

  /** Another tab of the same user, as it stands after a reload. */
  async reloaded(posts: number): Promise<Talk> {
    const { messages } = await this.history();
    return this.beside({ posts, messages });
  }

  /** Another tab on the same chat, of the same user unless another is named. */
  beside(options: {
    posts: number;
    messages: readonly Message[];
    user?: string;
    combination?: Combination;
  }): Talk {
    const { place, chatId, user } = this;
    const { transport, ...rest } = this.combination;
    // A chat is live in one tab alone; the others go another way.
    const combination = transport === "live" ? rest : this.combination;
    const earlier = [...this.earlier, ...this.recorder.posts];
    const isBesideLive = this.isLive;
    const tab = new Talk({ place, combination, chatId, user, earlier, isBesideLive, ...options });
    tab.#quiet = this.#quiet;
    return tab;
  }

  /** Wait until the named tools ask, and see that the stored chat waits in the same state. */
  async waitsFor(...tools: string[]): Promise<void> {
    await this.asks(...tools);
    this.#refuse(await historyFaults(this, { chat: "waiting" }, await this.history()));
  }

  #refuse(faults: readonly string[]): void {
    if (faults.length > 0) throw new Error(faults.join("\n"));
  }
}

export interface Plan {
  /** Posts that the story's first tab makes. */
  readonly posts: number | ((rule: Rule, combination: Combination) => number);
  /** Where it is told [everywhere]. */
  readonly combinations?: readonly Combination[];
}

/** Tell a story once for each combination, all of them side by side, each in a chat of its own. */
export function story(
  title: string,
  { posts, combinations = EVERYWHERE }: Plan,
  tell: (talk: Talk) => Promise<void>,
): void {
  describe.concurrent(title, () => {
    it.each(combinations.map((combination) => ({ combination, name: nameOf(combination) })))(
      "$name",
      async ({ combination }) => {
        const talk = new Talk({
          place: inject("places")[combination.style],
          combination,
          posts: typeof posts === "number" ? posts : posts(combination.rule, combination),
        });
        if (combination === combinations[0]) talk.looksLonger();
        try {
          await tell(talk);
        } catch (fault) {
          if (fault instanceof Error && !fault.message.includes(talk.chatId)) {
            fault.message += `\n${talk.describe()}`;
          }
          throw fault;
        } finally {
          talk.close();
        }
      },
    );
  });
}
