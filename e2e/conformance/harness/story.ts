import { describe, inject, it } from "vitest";
import { ClientTab } from "./client-tab.ts";
import { type ExpectedEnd, endFaults, storedFaults } from "./expectations.ts";
import { type Combination, EVERYWHERE, nameOf, played } from "./matrix.ts";
import type { Message } from "./messages.ts";
import type { RuleName } from "./send-rules.ts";
import { type Sample, type ServerInfo, sampleServer } from "./servers.ts";

/** Milliseconds for which an idle client is observed. */
const IDLE_CHECK = 300;
const LONG_IDLE_CHECK = 2_000;

/** A tab with the checks that every story makes. */
export class StoryTab extends ClientTab {
  #idleCheck = IDLE_CHECK;

  /** Observe the idle client for two seconds; done once per story. */
  extendIdleCheck(): void {
    this.#idleCheck = LONG_IDLE_CHECK;
  }

  /**
   * Wait for the end of the last post and check everything: posts, messages, effects, each chunk, the
   * rules of the release, the stored chat, the second reader, and that the idle client is silent.
   */
  async expectEnd(expected: ExpectedEnd): Promise<void> {
    await this.waitForPosts(this.expectedPosts);
    const [faults] = await Promise.all([
      endFaults(this, expected),
      this.expectIdle(this.#idleCheck),
    ]);
    this.#throwFaults(faults);
  }

  /** The tab after a reload. */
  async reload(posts: number): Promise<StoryTab> {
    const { messages } = await this.loadChat();
    return this.openTab({ posts, messages });
  }

  /** Another tab on the same chat, by default of the same user. */
  openTab(options: {
    posts: number;
    messages: readonly Message[];
    user?: string;
    combination?: Combination;
  }): StoryTab {
    const { server, chatId, user } = this;
    const { transport, ...rest } = this.combination;
    // A chat has at most one live tab; the others use SSE.
    const combination = transport === "live" ? rest : this.combination;
    const earlier = [...this.earlier, ...this.recorder.posts];
    const hasLiveTab = this.isLive;
    const tab = new StoryTab({
      server,
      combination,
      chatId,
      user,
      earlier,
      hasLiveTab,
      ...options,
    });
    tab.#idleCheck = this.#idleCheck;
    return tab;
  }

  /** Wait until the named tools have pending approvals, and compare the stored chat. */
  async expectPending(...tools: string[]): Promise<void> {
    await this.waitForApprovals(...tools);
    this.#throwFaults(await storedFaults(this, { chat: "waiting" }, await this.loadChat()));
  }

  #throwFaults(faults: readonly string[]): void {
    if (faults.length > 0) throw new Error(faults.join("\n"));
  }
}

export interface StoryOptions {
  /** The number of posts of the first tab. */
  readonly posts: number | ((rule: RuleName, combination: Combination) => number);
  /** The combinations that the story runs with; default: all. */
  readonly combinations?: readonly Combination[];
  /** The sample that is served; default: the conformance agent. */
  readonly sample?: Sample;
}

function serverOf({ style }: Combination, sample: Sample | undefined): ServerInfo {
  if (sample !== undefined) return sampleServer(inject("samples"), style, sample);
  return inject("servers")[style];
}

/** Run a story concurrently with each combination, each time in a new chat. */
export function story(
  title: string,
  { posts, combinations = EVERYWHERE, sample }: StoryOptions,
  run: (tab: StoryTab) => Promise<void>,
): void {
  const chosen = played(combinations, title);
  describe.concurrent(title, () => {
    // As `%s`, since names of properties are truncated.
    it.each(chosen.map((combination) => [nameOf(combination), combination] as const))(
      "%s",
      async (_name, combination) => {
        const tab = new StoryTab({
          server: serverOf(combination, sample),
          combination,
          posts: typeof posts === "number" ? posts : posts(combination.rule, combination),
        });
        if (combination === chosen[0]) tab.extendIdleCheck();
        try {
          await run(tab);
        } catch (error) {
          if (error instanceof Error && !error.message.includes(tab.chatId)) {
            error.message += `\n${tab.describe()}`;
          }
          throw error;
        } finally {
          tab.close();
        }
      },
    );
  });
}
