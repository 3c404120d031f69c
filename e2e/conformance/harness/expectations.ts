import { type Exchange, ruleFaults } from "../../../frontend/client/src/testing/index.ts";
import { SDKS } from "./ai-sdk.ts";
import type { ClientTab, Reader, StoredChat } from "./client-tab.ts";
import { difference } from "./equality.ts";
import { sdkOf } from "./matrix.ts";
import {
  assistantMessages,
  CLIENT_TOOLS,
  calls,
  isConfirmation,
  isGranted,
  type Message,
  texts,
} from "./messages.ts";
import { type Turn, trace } from "./recorder.ts";
import { effectsOf } from "./servers.ts";

/** The exception text of the failing tool and model, which must not be sent to clients. */
const SECRET = "secret-8731";

/** The expected end of a story; the default of each property is in brackets. */
export interface ExpectedEnd {
  /** The tool and the state of each call in all assistant messages, in any order [none]. */
  readonly calls?: readonly (readonly [tool: string, state: string])[];
  /** The texts of all assistant messages, in order [not checked]. */
  readonly texts?: readonly string[];
  /** The number of executions per tool [none]. */
  readonly effects?: Readonly<Record<string, number>>;
  /** The number of assistant messages of the client [1]. */
  readonly messages?: number;
  /** The status of the client [ready]. */
  readonly status?: "ready" | "error";
  /** The status of the stored chat [ready]. */
  readonly chat?: StoredChat["status"];
  /** Whether a second reader resumes the last turn [true]. */
  readonly resumes?: boolean;
  /** Whether the last turn replays a finished one, which has no progress parts [false]. */
  readonly replayed?: boolean;
  /** Whether the last message of the client equals the stored one [true]. */
  readonly stored?: boolean;
}

/** The differences from the expected end of a story; empty if there is none. */
export async function endFaults(tab: ClientTab, expected: ExpectedEnd): Promise<string[]> {
  const stored = await tab.loadChat();
  const faults = [
    ...messageFaults(tab, expected),
    ...exchanges(tab, grantedCalls(stored))
      .flatMap(ruleFaults)
      .filter((fault) => !(expected.replayed && fault.startsWith("D6"))),
    ...(await tab.recorder.faults()),
    ...(await effectFaults(tab, expected)),
    ...(await storedFaults(tab, expected, stored)),
  ];
  if (expected.resumes ?? true) faults.push(...(await secondReaderFaults(tab)));
  return faults;
}

/** The turns of a chat by exchange; an exchange begins with a post of a user message. */
export function exchanges(tab: ClientTab, granted: ReadonlySet<string> = new Set()): Exchange[] {
  const groups: Turn[][] = [];
  for (const turn of [...tab.earlier, ...tab.recorder.posts]) {
    if (turn.status !== 200) continue;
    const sent = (turn.body?.messages ?? []) as Message[];
    if (sent.at(-1)?.role === "user" || groups.length === 0) groups.push([]);
    groups.at(-1)?.push(turn);
  }
  const { release, version } = tab.combination;
  const isMajor6 = SDKS[version].major === 6;
  return groups.map((turns) => ({
    turns: turns.map((turn) => turn.chunks),
    release: release === "preview" && isMajor6 ? "deferred" : release,
    message: tab.chat.messages.find(({ id }) => id === turns[0]?.chunks[0]?.messageId),
    clientTools: CLIENT_TOOLS,
    secrets: [SECRET],
    granted,
  }));
}

function grantedCalls({ messages }: StoredChat): ReadonlySet<string> {
  const parts = messages.flatMap((message) => message.parts).filter(isGranted);
  return new Set(parts.map(({ toolCallId }) => toolCallId ?? ""));
}

function messageFaults(tab: ClientTab, expected: ExpectedEnd): string[] {
  const faults: string[] = [];
  const compare = (name: string, actual: unknown, wanted: unknown): void => {
    const [actualJson, wantedJson] = [JSON.stringify(actual), JSON.stringify(wanted)];
    if (actualJson !== wantedJson) {
      faults.push(`${name}: ${actualJson} instead of ${wantedJson}`);
    }
  };
  const messages = assistantMessages(tab.chat.messages);
  compare("assistant messages", messages.length, expected.messages ?? 1);
  compare("posts", tab.recorder.posts.length, tab.expectedPosts);
  compare("status", tab.chat.status, expected.status ?? "ready");
  compare("calls", actualCalls(messages), expectedCalls(tab, expected));
  if (expected.texts !== undefined) compare("texts", messages.flatMap(texts), expected.texts);
  return faults;
}

function actualCalls(messages: readonly Message[]): string[] {
  return messages
    .flatMap(calls)
    .map(({ tool, state }) => `${tool} ${state}`)
    .sort();
}

/**
 * In style `confirmation` the approval and the denial are those of the confirmation; the call that it
 * refers to has its outcome only, which is an error if it was denied.
 */
function expectedCalls(tab: ClientTab, expected: ExpectedEnd): string[] {
  const wanted = (expected.calls ?? []).map(([tool, state]) => `${tool} ${state}`);
  if (tab.combination.style === "call") return wanted.sort();
  return wanted
    .filter((call) => !/ approval-/.test(call))
    .map((call) => call.replace(" output-denied", " output-error"))
    .sort();
}

async function effectFaults(tab: ClientTab, expected: ExpectedEnd): Promise<string[]> {
  const counts: Record<string, number> = {};
  for (const { tool } of await effectsOf(tab.server, tab.chatId)) {
    counts[tool] = (counts[tool] ?? 0) + 1;
  }
  const tools = new Set([...Object.keys(counts), ...Object.keys(expected.effects ?? {})]);
  return [...tools]
    .filter((tool) => (counts[tool] ?? 0) !== (expected.effects?.[tool] ?? 0))
    .map(
      (tool) =>
        `${tool} was executed ${counts[tool] ?? 0} times, not ${expected.effects?.[tool] ?? 0}`,
    );
}

/** Check the stored chat: its status, its validity in both majors, and its equality with the client. */
export async function storedFaults(
  tab: ClientTab,
  expected: ExpectedEnd,
  stored: StoredChat,
): Promise<string[]> {
  const faults: string[] = [];
  const wanted = expected.chat ?? "ready";
  if (stored.status !== wanted) faults.push(`the chat is ${stored.status}, not ${wanted}`);
  for (const [owner, messages] of [
    ["stored", stored.messages],
    ["client's", tab.chat.messages],
  ] as const) {
    for (const sdk of [SDKS["6"], SDKS["7"]]) {
      const fault = await sdk.messagesFault(messages.filter((message) => !mayBeInvalid(message)));
      if (fault !== undefined) faults.push(`the ${owner} messages are not valid in ${fault}`);
    }
  }
  if (expected.stored ?? true) {
    const live = assistantMessages(tab.chat.messages).at(-1);
    const storedMessage = stored.messages.find((message) => message.id === live?.id);
    const major = sdkOf(tab.combination).major;
    const differs = difference(
      live,
      storedMessage,
      { major, resumed: false },
      isApprovedWithoutOutput,
    );
    if (differs !== undefined) faults.push(`live and stored differ in ${differs}`);
  }
  return faults;
}

async function secondReaderFaults(tab: ClientTab): Promise<string[]> {
  const reader = await tab.reader;
  if (reader === undefined) return ["the last turn has not started, so no reader could resume it"];
  if (!reader.attached) return tab.isLive ? [] : ["a second reader found no running turn"];
  const faults = [...(await readerFaults(tab, reader)), ...(await reader.recorder.faults())];
  return faults.length > 0 ? [...faults, trace(reader.recorder.turns)] : [];
}

/** Compare the message of a second reader with that of the client. */
export async function readerFaults(tab: ClientTab, { chat }: Reader): Promise<string[]> {
  const major = sdkOf(tab.combination).major;
  const live = assistantMessages(tab.chat.messages).at(-1);
  const resumed = assistantMessages(chat.messages).at(-1);
  const faults: string[] = [];
  const differs = difference(live, resumed, { major, resumed: true }, isApprovedWithoutOutput);
  if (differs !== undefined) faults.push(`live and resumed differ in ${differs}`);
  // In AI SDK 6, a resumed denial has no approval, which is invalid.
  if (resumed !== undefined && mayBeInvalid(resumed)) return faults;
  if (major === 7 || !resumed?.parts.some((part) => part.state === "output-denied")) {
    const fault = await SDKS[tab.combination.version].messagesFault(chat.messages);
    if (fault !== undefined) faults.push(`the resumed messages are not valid in ${fault}`);
  }
  return faults;
}

/** Whether a part is a gated client-side call that was approved and has no output. */
function isApprovedWithoutOutput(part: Message["parts"][number]): boolean {
  return (
    !isConfirmation(part) &&
    CLIENT_TOOLS.has(part.type.slice("tool-".length)) &&
    part.approval?.approved === true &&
    (part.state === "input-available" || part.state === "approval-responded")
  );
}

/** Whether a part is a decided confirmation that was announced again and is not closed yet. */
function isAnnouncedAgain(part: Message["parts"][number]): boolean {
  return isConfirmation(part) && part.state === "input-available" && part.approval !== undefined;
}

/** The AI SDK accepts no approval in `input-available`, which its clients keep there. */
function mayBeInvalid(message: Message): boolean {
  return message.parts.some((part) => isApprovedWithoutOutput(part) || isAnnouncedAgain(part));
}
