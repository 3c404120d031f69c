import type { SocketTransport } from "../harness/kit.ts";
import type { Combination } from "../harness/matrix.ts";
import { story } from "../harness/story.ts";

const KINDS = [undefined, "websocket", "bidi", "live"] as const;
const CHAT = { style: "call", rule: "stock" } as const;

/** The clients that can leave for a transport from each other one; AI SDK 6 has no stock socket. */
function leavingFor(to: SocketTransport | undefined): Combination[] {
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
    { posts: 2, combinations: leavingFor(to) },
    async (talk) => {
      talk.say("story:two_in_sequence");
      await talk.waitsFor("search");
      await talk.approve("search");
      await talk.waitsFor("update");
      const { transport: _, ...rest } = talk.combination;
      const combination = { ...rest, ...(to && { transport: to }) };
      const { messages } = await talk.history();
      const other = talk.beside({ posts: 1, messages, combination });
      await other.deny("update", "not today");
      await other.ends({
        calls: [
          ["search", "output-available"],
          ["update", "output-denied"],
        ],
        effects: { search: 1 },
        // Nothing holds a live model back until a reader has come.
        resumes: talk.combination.transport !== "live",
      });
    },
  );
}
