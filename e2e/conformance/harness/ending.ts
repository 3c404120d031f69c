import type { Conversation, History, Resumed } from "./conversation.ts";
import { effectsOf } from "./effects.ts";
import { difference } from "./equality.ts";
import { kits } from "./kit.ts";
import { kitOf } from "./matrix.ts";
import {
  assistantMessages,
  CLIENT_TOOLS,
  calls,
  isConfirmation,
  isRemembered,
  type Message,
  texts,
} from "./messages.ts";
import { type Turn, trace } from "./recorder.ts";
import { type Exchange, ruleFaults } from "./rules.ts";

/** How a story ends. What is left out has the value in brackets. */
export interface Ending {
  /** Tool and state of every call of all assistant messages, in any order [none]. */
  readonly calls?: readonly (readonly [tool: string, state: string])[];
  /** Every text of all assistant messages, in order [not looked at]. */
  readonly texts?: readonly string[];
  /** Runs per tool, counted outside the server [none]. */
  readonly effects?: Readonly<Record<string, number>>;
  /** Assistant messages the client holds [1]. */
  readonly messages?: number;
  /** Status of the client [ready]. */
  readonly status?: "ready" | "error";
  /** Status of the chat on the server [ready]. */
  readonly chat?: History["status"];
  /** Whether a second reader joins the last turn [true]. */
  readonly resumes?: boolean;
  /** Whether the last turn is a finished one told again, which brings no word of progress [false]. */
  readonly rebuilt?: boolean;
  /** Whether the client's last message is what the server stores of it [true]. */
  readonly stored?: boolean;
}

/** Whatever is not as it should be at the end of a story; nothing when all is well. */
export async function endingFaults(talk: Conversation, ending: Ending): Promise<string[]> {
  const history = await talk.history();
  const faults = [
    ...messageFaults(talk, ending),
    ...exchanges(talk, rememberedCalls(history))
      .flatMap(ruleFaults)
      .filter((fault) => !(ending.rebuilt && fault.startsWith("D6"))),
    ...(await talk.recorder.faults()),
    ...(await effectFaults(talk, ending)),
    ...(await historyFaults(talk, ending, history)),
  ];
  if (ending.resumes ?? true) faults.push(...(await resumedFaults(talk)));
  return faults;
}

/** The turns of a chat by exchange: one begins where the last message sent is the user's. */
export function exchanges(
  talk: Conversation,
  remembered: ReadonlySet<string> = new Set(),
): Exchange[] {
  const groups: Turn[][] = [];
  for (const turn of [...talk.earlier, ...talk.recorder.posts]) {
    if (turn.status !== 200) continue;
    const sent = (turn.body?.messages ?? []) as Message[];
    if (sent.at(-1)?.role === "user" || groups.length === 0) groups.push([]);
    groups.at(-1)?.push(turn);
  }
  const { release, version } = talk.combination;
  const sixth = kits[version].major === 6;
  return groups.map((turns) => ({
    turns: turns.map((turn) => turn.chunks),
    release: release === "preview" && sixth ? "deferred" : release,
    message: talk.chat.messages.find(({ id }) => id === turns[0]?.chunks[0]?.messageId),
    clientTools: CLIENT_TOOLS,
    remembered,
  }));
}

function rememberedCalls({ messages }: History): ReadonlySet<string> {
  const parts = messages.flatMap((message) => message.parts).filter(isRemembered);
  return new Set(parts.map(({ toolCallId }) => toolCallId ?? ""));
}

function messageFaults(talk: Conversation, ending: Ending): string[] {
  const faults: string[] = [];
  const expect = (what: string, actual: unknown, wanted: unknown): void => {
    const [is, should] = [JSON.stringify(actual), JSON.stringify(wanted)];
    if (is !== should) faults.push(`${what}: ${is} instead of ${should}`);
  };
  const messages = assistantMessages(talk.chat.messages);
  expect("assistant messages", messages.length, ending.messages ?? 1);
  expect("posts", talk.recorder.posts.length, talk.expectedPosts);
  expect("status", talk.chat.status, ending.status ?? "ready");
  expect("calls", actualCalls(messages), wantedCalls(talk, ending));
  if (ending.texts !== undefined) expect("texts", messages.flatMap(texts), ending.texts);
  return faults;
}

function actualCalls(messages: readonly Message[]): string[] {
  return messages
    .flatMap(calls)
    .map(({ tool, state }) => `${tool} ${state}`)
    .sort();
}

/**
 * In style `confirmation` the card asks, is answered and is denied; the call behind it appears with
 * its outcome, which is an error when it was denied.
 */
function wantedCalls(talk: Conversation, ending: Ending): string[] {
  const wanted = (ending.calls ?? []).map(([tool, state]) => `${tool} ${state}`);
  if (talk.combination.style === "call") return wanted.sort();
  return wanted
    .filter((call) => !/ approval-/.test(call))
    .map((call) => call.replace(" output-denied", " output-error"))
    .sort();
}

async function effectFaults(talk: Conversation, ending: Ending): Promise<string[]> {
  const counted: Record<string, number> = {};
  for (const { tool } of await effectsOf(talk.place, talk.chatId)) {
    counted[tool] = (counted[tool] ?? 0) + 1;
  }
  const tools = new Set([...Object.keys(counted), ...Object.keys(ending.effects ?? {})]);
  return [...tools]
    .filter((tool) => (counted[tool] ?? 0) !== (ending.effects?.[tool] ?? 0))
    .map((tool) => `${tool} ran ${counted[tool] ?? 0} times, not ${ending.effects?.[tool] ?? 0}`);
}

/** The stored chat beside the client's: its status, both validators, and Equality. */
export async function historyFaults(
  talk: Conversation,
  ending: Ending,
  history: History,
): Promise<string[]> {
  const faults: string[] = [];
  const wanted = ending.chat ?? "ready";
  if (history.status !== wanted) faults.push(`the chat is ${history.status}, not ${wanted}`);
  for (const [whose, messages] of [
    ["stored", history.messages],
    ["client's", talk.chat.messages],
  ] as const) {
    for (const judge of [kits["6"], kits["7"]]) {
      const fault = await judge.messagesFault(messages.filter(isComparable));
      if (fault !== undefined) faults.push(`the ${whose} messages are not valid in ${fault}`);
    }
  }
  if (ending.stored ?? true) {
    const live = assistantMessages(talk.chat.messages).at(-1);
    const stored = history.messages.find((message) => message.id === live?.id);
    const major = kitOf(talk.combination).major;
    const differs = difference(live, stored, { major, resumed: false }, isBetween);
    if (differs !== undefined) faults.push(`live and stored differ in ${differs}`);
  }
  return faults;
}

async function resumedFaults(talk: Conversation): Promise<string[]> {
  const resumed = await talk.resumed;
  if (resumed === undefined) return ["the last turn has not begun, so nobody could join it"];
  if (!resumed.attached) return talk.isLive ? [] : ["a second reader found no running turn"];
  const faults = [...(await readerFaults(talk, resumed)), ...(await resumed.recorder.faults())];
  return faults.length > 0 ? [...faults, trace(resumed.recorder.turns)] : [];
}

/** A second reader's message beside the client's. */
export async function readerFaults(talk: Conversation, { chat }: Resumed): Promise<string[]> {
  const major = kitOf(talk.combination).major;
  const live = assistantMessages(talk.chat.messages).at(-1);
  const resumed = assistantMessages(chat.messages).at(-1);
  const faults: string[] = [];
  const differs = difference(live, resumed, { major, resumed: true }, isBetween);
  if (differs !== undefined) faults.push(`live and resumed differ in ${differs}`);
  // A 6 client that resumes holds a denial without its approval, which no validator accepts.
  if (major === 7 || !resumed?.parts.some((part) => part.state === "output-denied")) {
    const fault = await kits[talk.combination.version].messagesFault(chat.messages);
    if (fault !== undefined) faults.push(`the resumed messages are not valid in ${fault}`);
  }
  return faults;
}

/** A gated client-side call that is approved and has no output yet. */
function isBetween(part: Message["parts"][number]): boolean {
  return (
    !isConfirmation(part) &&
    CLIENT_TOOLS.has(part.type.slice("tool-".length)) &&
    part.approval?.approved === true &&
    (part.state === "input-available" || part.state === "approval-responded")
  );
}

function isComparable(message: Message): boolean {
  return !message.parts.some(isBetween);
}
