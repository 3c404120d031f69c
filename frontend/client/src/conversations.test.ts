import { describe, expect, test } from "vitest";
import type { Chunk, Response } from "../testing/chunks.ts";
import {
  ANSWER,
  call,
  failed,
  gate,
  output,
  serverCall,
  step,
  text,
  turn,
} from "../testing/chunks.ts";
import { MOST_POSTS, ScriptedChat, VERSIONS } from "../testing/scripted-chat.ts";
import type { ChatMessage, MessagePart } from "./messages.ts";
import { s2Bidi, s2Sse } from "./s2-rules.ts";
import { sendAutomaticallyWhen } from "./send-automatically.ts";

const GATE = turn(step(gate("c1")));
const ENDS = turn(output("c1"), ANSWER);
const NAMED = { clientTools: ["locate"] };

function loaded(...parts: readonly MessagePart[]): ChatMessage[] {
  return [
    { id: "u1", role: "user", parts: [{ type: "text" }] },
    { id: "m1", role: "assistant", parts: [{ type: "step-start" }, ...parts] },
  ];
}

const ASKED: MessagePart = {
  type: "tool-pay",
  toolCallId: "c1",
  state: "approval-requested",
  input: {},
  approval: { id: "approval-c1" },
};

function inSequence(gates: number): Response[] {
  const ids = Array.from({ length: gates }, (_, index) => `c${index}`);
  return [
    ...ids.map((id) => turn(step(gate(id)))),
    turn(
      step(
        text("Done."),
        ids.map((id) => output(id)),
      ),
    ),
  ];
}

/** Numbers from 0 to below 1 that are the same in every run. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A server that says anything at all: results or none, steps or none, gates and page tools. */
function anything(random: () => number): Response[] {
  let calls = 0;
  const asked: string[] = [];
  const pick = (): readonly Chunk[] => {
    calls += 1;
    const id = `c${calls}`;
    const settled = random() < 0.5 ? asked.shift() : undefined;
    const kinds: (readonly Chunk[])[] = [
      [serverCall(id), output(id)],
      [serverCall(id)],
      [call(id, "locate")],
      text("Words.", `t${calls}`),
      settled === undefined ? [] : [output(settled)],
      [{ type: "start-step" }],
    ];
    if (random() < 0.4) {
      asked.push(id);
      return gate(id);
    }
    return kinds[Math.floor(random() * kinds.length)] ?? [];
  };
  return Array.from({ length: 6 }, () => {
    const chunks = Array.from({ length: Math.floor(random() * 4) }, pick).flat();
    return random() < 0.1 ? failed(...chunks) : turn(chunks);
  });
}

describe.each(VERSIONS)("a client of ai %s", (version) => {
  test.each([
    { name: "safe", rule: () => sendAutomaticallyWhen() },
    { name: "s2Sse", rule: () => s2Sse },
    { name: "s2Bidi", rule: () => s2Bidi },
  ])("posts once more than there are gates in sequence under $name", async ({ rule }) => {
    for (let gates = 1; gates <= 10; gates += 1) {
      const scripted = new ScriptedChat({ version, rule: rule(), responses: inSequence(gates) });
      await scripted.say("Go.");
      await scripted.answerAll();
      await scripted.rest();

      expect(scripted.posts).toBe(gates + 1);
      expect(scripted.states).toEqual(Array(gates).fill("output-available"));
    }
  });

  test.each([{}, NAMED])(
    "sends an output that the page gave while it was called",
    async (names) => {
      const scripted = new ScriptedChat({
        version,
        rule: sendAutomaticallyWhen(names),
        responses: [turn(step(call("c1", "locate"))), turn(ANSWER)],
        pageTools: { locate: { latitude: 48.1 } },
      });
      await scripted.say("Go.");

      expect(scripted.posts).toBe(2);
    },
  );

  test("sends the answer to a card that was loaded with the page", async () => {
    const rule = sendAutomaticallyWhen();
    const messages = loaded(ASKED);
    const scripted = new ScriptedChat({ version, rule, responses: [ENDS], messages });
    await scripted.answerAll();

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
      await scripted.give("c1", {});

      expect(scripted.posts).toBe(1);
    },
  );

  test("sends the output of a named call that had been approved before the page was loaded", async () => {
    const approval = { id: "approval-c1", approved: true };
    const part = { ...ASKED, type: "tool-locate", state: "approval-responded", approval };
    const rule = sendAutomaticallyWhen(NAMED);
    const messages = loaded(part);
    const scripted = new ScriptedChat({ version, rule, responses: [turn(ANSWER)], messages });
    await scripted.give("c1", {});

    expect(scripted.posts).toBe(1);
  });

  test.each([{}, NAMED])("sends nothing when a resumed answer has ended", async (names) => {
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

  test("sends an answer that follows a stop", async () => {
    const rule = sendAutomaticallyWhen();
    const scripted = new ScriptedChat({ version, rule, responses: [GATE, ENDS] });
    await scripted.say("Go.");
    await scripted.chat.stop();
    await scripted.answerAll();

    expect(scripted.posts).toBe(2);
  });

  test("sends the same answer again after the page has loaded the card anew", async () => {
    const rule = sendAutomaticallyWhen();
    const responses = [GATE, failed(), failed(), ENDS];
    const scripted = new ScriptedChat({ version, rule, responses });
    await scripted.say("Go.");
    const before = structuredClone(scripted.chat.messages);
    await scripted.answerAll();
    expect([scripted.posts, scripted.chat.status]).toEqual([2, "error"]);

    scripted.chat.messages = structuredClone(before);
    await scripted.answerAll();
    expect(scripted.posts).toBe(2);

    scripted.chat.messages = structuredClone(before);
    rule.forget("m1");
    await scripted.answerAll();
    expect(scripted.posts).toBe(3);
  });

  test("lets two chats share one rule", async () => {
    const rule = sendAutomaticallyWhen();
    for (const id of ["m-one", "m-two"]) {
      const start = { type: "start", messageId: id };
      const responses = [turn(start, step(gate("c1"))), turn(start, output("c1"), ANSWER)];
      const scripted = new ScriptedChat({ version, rule, responses });
      await scripted.say("Go.");
      await scripted.answerAll();

      expect(scripted.posts).toBe(2);
    }
  });

  test.each([{}, NAMED])(
    "posts at most once for each thing it was given, whatever comes",
    async (names) => {
      for (let seed = 1; seed <= 60; seed += 1) {
        const random = chance(seed);
        const rule = sendAutomaticallyWhen(names);
        const scripted = new ScriptedChat({ version, rule, responses: anything(random) });
        await scripted.say("Go.");
        let given = 0;
        for (; given < MOST_POSTS; given += 1) {
          const { parts } = scripted;
          const asking = parts.find((part) => part.state === "approval-requested");
          const open = parts.find(
            (part) => part.type === "tool-locate" && part.state === "input-available",
          );
          if (asking?.approval !== undefined) {
            await scripted.answer(asking.approval.id, random() < 0.5);
          } else if (open?.toolCallId !== undefined) await scripted.give(open.toolCallId, {});
          else break;
        }

        expect(scripted.posts, `seed ${seed}`).toBeLessThanOrEqual(given + 1);
      }
    },
  );
});
