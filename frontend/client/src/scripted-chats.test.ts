import { describe, expect, test } from "vitest";
import { VERSIONS } from "../testing/ai-sdk-versions.ts";
import { MAX_POSTS, ScriptedChat } from "../testing/scripted-chat.ts";
import { whenIdle } from "../testing/when-idle.ts";
import type { ChatMessage, MessagePart } from "./message-parts.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";
import { s2Bidi, s2Sse } from "./sequential-send-rules.ts";
import type { Chunk, ResponseChunks } from "./testing/chunks.ts";
import {
  ANSWER,
  call,
  failedTurn,
  gatedCall,
  output,
  serverCall,
  step,
  text,
  turn,
} from "./testing/chunks.ts";

const GATED = turn(step(gatedCall("c1")));
const FINAL = turn(output("c1"), ANSWER);
const NAMED = { clientTools: ["locate"] };

function loaded(...parts: readonly MessagePart[]): ChatMessage[] {
  return [
    { id: "u1", role: "user", parts: [{ type: "text" }] },
    { id: "m1", role: "assistant", parts: [{ type: "step-start" }, ...parts] },
  ];
}

const PENDING: MessagePart = {
  type: "tool-pay",
  toolCallId: "c1",
  state: "approval-requested",
  input: {},
  approval: { id: "approval-c1" },
};

function inSequence(count: number): ResponseChunks[] {
  const ids = Array.from({ length: count }, (_, index) => `c${index}`);
  return [
    ...ids.map((id) => turn(step(gatedCall(id)))),
    turn(
      step(
        text("Done."),
        ids.map((id) => output(id)),
      ),
    ),
  ];
}

/** A deterministic random number generator, from 0 to below 1. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Random responses: with and without results and steps, gated and client-side calls. */
function randomResponses(random: () => number): ResponseChunks[] {
  let calls = 0;
  const requested: string[] = [];
  const pick = (): readonly Chunk[] => {
    calls += 1;
    const id = `c${calls}`;
    const settled = random() < 0.5 ? requested.shift() : undefined;
    const kinds: (readonly Chunk[])[] = [
      [serverCall(id), output(id)],
      [serverCall(id)],
      [call(id, "locate")],
      text("Words.", `t${calls}`),
      settled === undefined ? [] : [output(settled)],
      [{ type: "start-step" }],
    ];
    if (random() < 0.4) {
      requested.push(id);
      return gatedCall(id);
    }
    return kinds[Math.floor(random() * kinds.length)] ?? [];
  };
  return Array.from({ length: 6 }, () => {
    const chunks = Array.from({ length: Math.floor(random() * 4) }, pick).flat();
    return random() < 0.1 ? failedTurn(...chunks) : turn(chunks);
  });
}

describe.each(VERSIONS)("a client of ai %s", (version) => {
  test.each([
    { name: "safe", rule: () => sendAutomaticallyWhen() },
    { name: "s2Sse", rule: () => s2Sse },
    { name: "s2Bidi", rule: () => s2Bidi },
  ])("posts once more than there are gated calls in sequence under $name", async ({ rule }) => {
    for (let count = 1; count <= 10; count += 1) {
      const scripted = new ScriptedChat({ version, rule: rule(), responses: inSequence(count) });
      await scripted.send("Go.");
      await scripted.decideAll();
      await whenIdle(scripted.chat);

      expect(scripted.posts).toBe(count + 1);
      expect(scripted.states).toEqual(Array(count).fill("output-available"));
    }
  });

  test.each([{}, NAMED])("sends an output that is added in onToolCall", async (names) => {
    const scripted = new ScriptedChat({
      version,
      rule: sendAutomaticallyWhen(names),
      responses: [turn(step(call("c1", "locate"))), turn(ANSWER)],
      clientToolOutputs: { locate: { latitude: 48.1 } },
    });
    await scripted.send("Go.");

    expect(scripted.posts).toBe(2);
  });

  test("sends the decision on an approval that was loaded with the page", async () => {
    const rule = sendAutomaticallyWhen();
    const messages = loaded(PENDING);
    const scripted = new ScriptedChat({ version, rule, responses: [FINAL], messages });
    await scripted.decideAll();

    expect(scripted.posts).toBe(1);
    expect(scripted.states).toEqual(["output-available"]);
  });

  test.each([{}, NAMED])(
    "sends the output of a call that was loaded with the page",
    async (names) => {
      const part = { type: "tool-locate", toolCallId: "c1", state: "input-available", input: {} };
      const rule = sendAutomaticallyWhen(names);
      const messages = loaded(part);
      const scripted = new ScriptedChat({ version, rule, responses: [turn(ANSWER)], messages });
      await scripted.addOutput("c1", {});

      expect(scripted.posts).toBe(1);
    },
  );

  test("sends the output of a named call that was approved before the page was loaded", async () => {
    const approval = { id: "approval-c1", approved: true };
    const part = { ...PENDING, type: "tool-locate", state: "approval-responded", approval };
    const rule = sendAutomaticallyWhen(NAMED);
    const messages = loaded(part);
    const scripted = new ScriptedChat({ version, rule, responses: [turn(ANSWER)], messages });
    await scripted.addOutput("c1", {});

    expect(scripted.posts).toBe(1);
  });

  test.each([{}, NAMED])("sends nothing at the end of a resumed response", async (names) => {
    const resumed = turn(
      step(call("c1", "locate"), output("c1")),
      step(call("c2"), output("c2")),
      ANSWER,
    );
    const rule = sendAutomaticallyWhen(names);
    const scripted = new ScriptedChat({ version, rule, responses: [turn()], resumed });
    await scripted.resume();

    expect(scripted.posts).toBe(0);
    expect(scripted.states).toEqual(["output-available", "output-available"]);
  });

  test("sends a decision after a stop", async () => {
    const rule = sendAutomaticallyWhen();
    const scripted = new ScriptedChat({ version, rule, responses: [GATED, FINAL] });
    await scripted.send("Go.");
    await scripted.chat.stop();
    await scripted.decideAll();

    expect(scripted.posts).toBe(2);
  });

  test("sends the same decision again after the approval was reloaded and forgotten", async () => {
    const rule = sendAutomaticallyWhen();
    const responses = [GATED, failedTurn(), failedTurn(), FINAL];
    const scripted = new ScriptedChat({ version, rule, responses });
    await scripted.send("Go.");
    const before = structuredClone(scripted.chat.messages);
    await scripted.decideAll();
    expect([scripted.posts, scripted.chat.status]).toEqual([2, "error"]);

    scripted.chat.messages = structuredClone(before);
    await scripted.decideAll();
    expect(scripted.posts).toBe(2);

    scripted.chat.messages = structuredClone(before);
    rule.forget("m1");
    await scripted.decideAll();
    expect(scripted.posts).toBe(3);
  });

  test("can be shared by two chats", async () => {
    const rule = sendAutomaticallyWhen();
    for (const id of ["m-one", "m-two"]) {
      const start = { type: "start", messageId: id };
      const responses = [turn(start, step(gatedCall("c1"))), turn(start, output("c1"), ANSWER)];
      const scripted = new ScriptedChat({ version, rule, responses });
      await scripted.send("Go.");
      await scripted.decideAll();

      expect(scripted.posts).toBe(2);
    }
  });

  test.each([{}, NAMED])(
    "posts at most once for each decision and output, for any response",
    async (names) => {
      for (let seed = 1; seed <= 60; seed += 1) {
        const random = randomNumbers(seed);
        const rule = sendAutomaticallyWhen(names);
        const scripted = new ScriptedChat({ version, rule, responses: randomResponses(random) });
        await scripted.send("Go.");
        let actions = 0;
        for (; actions < MAX_POSTS; actions += 1) {
          const { parts } = scripted;
          const pending = parts.find((part) => part.state === "approval-requested");
          const open = parts.find(
            (part) => part.type === "tool-locate" && part.state === "input-available",
          );
          if (pending?.approval !== undefined) {
            await scripted.decide(pending.approval.id, random() < 0.5);
          } else if (open?.toolCallId !== undefined) await scripted.addOutput(open.toolCallId, {});
          else break;
        }

        expect(scripted.posts, `seed ${seed}`).toBeLessThanOrEqual(actions + 1);
      }
    },
  );
});
