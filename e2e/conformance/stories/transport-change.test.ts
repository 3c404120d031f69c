import type { SocketTransport } from "../harness/ai-sdk.ts";
import type { Combination } from "../harness/matrix.ts";
import { story } from "../harness/story.ts";

const KINDS = [undefined, "websocket", "bidi", "live"] as const;
const CHAT = { style: "call", rule: "stock" } as const;

/** The clients that change to a transport from each other one; AI SDK 6 has no stock socket. */
function changingTo(to: SocketTransport | undefined): Combination[] {
  return KINDS.filter((from) => from !== to).flatMap((from) =>
    (["6", "7"] as const)
      .filter((version) => version === "7" || (from !== "websocket" && to !== "websocket"))
      .flatMap((version) =>
        (["deferred", "progressive"] as const).map((release) => ({
          ...CHAT,
          version,
          release,
          ...(from && { transport: from }),
        })),
      ),
  );
}

for (const to of KINDS) {
  story(
    `an exchange that ends over ${to ?? "sse"}`,
    { posts: 2, combinations: changingTo(to) },
    async (tab) => {
      tab.send("story:two_in_sequence");
      await tab.expectPending("search");
      await tab.approve("search");
      await tab.expectPending("update");
      const { transport: _, ...rest } = tab.combination;
      const combination = { ...rest, ...(to && { transport: to }) };
      const { messages } = await tab.loadChat();
      const other = tab.openTab({ posts: 1, messages, combination });
      await other.deny("update", "not today");
      await other.expectEnd({
        calls: [
          ["search", "output-available"],
          ["update", "output-denied"],
        ],
        effects: { search: 1 },
        // A live model cannot be paused until a reader resumes.
        resumes: tab.combination.transport !== "live",
      });
    },
  );
}
