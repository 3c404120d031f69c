import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { EventServer, MemoryLocks } from "../../testing/event-server.ts";
import { type SubscribeOptions, subscribeToEvents } from "./subscribe-to-events.ts";
import { isAfter, type UserEvent } from "./user-events.ts";

// Only a defect reaches the limit, not a busy machine.
const waitFor = (assertions: () => void) => vi.waitFor(assertions, { timeout: 30_000 });

let server: EventServer;
const open: (() => void)[] = [];

/** A tab: the events that it got, and a function that closes it. */
function openTab(options: Partial<SubscribeOptions> = {}) {
  const events: string[] = [];
  const connection: boolean[] = [];
  const errors: unknown[] = [];
  const close = subscribeToEvents({
    api: "http://localhost/api/events",
    fetch: server.fetch,
    onEvent: (event) => events.push(nameOf(event)),
    onConnectionChange: (isConnected) => connection.push(isConnected),
    onError: (error) => errors.push(error),
    ...options,
  });
  open.push(close);
  return { events, connection, errors, close };
}

const nameOf = (event: UserEvent) => ("chatId" in event ? event.chatId : event.type);
const deleted = (chatId: string): UserEvent => ({ type: "chat.deleted", chatId });

beforeEach(() => {
  server = new EventServer();
  vi.stubGlobal("navigator", {});
});

afterEach(() => {
  for (const close of open.splice(0)) close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a lost connection is resumed after the last event", async () => {
  vi.useFakeTimers();
  const tab = openTab();
  await waitFor(() => expect(tab.events).toEqual(["ready"]));
  server.publish(deleted("a"));
  await waitFor(() => expect(tab.events).toEqual(["ready", "a"]));
  server.breakAll();
  server.publish(deleted("b"));
  await waitFor(() => expect(tab.connection).toEqual([true, false]));
  await vi.advanceTimersByTimeAsync(2000);
  await waitFor(() => expect(tab.events).toEqual(["ready", "a", "b"]));
  expect(tab.connection).toEqual([true, false, true]);
  expect(server.requests).toEqual(["", "?after=1-1"]);
});

test("a connection that is silent for 20 seconds is replaced", async () => {
  vi.useFakeTimers();
  const tab = openTab();
  await waitFor(() => expect(tab.events).toEqual(["ready"]));
  await vi.advanceTimersByTimeAsync(15_000);
  server.comment();
  await vi.advanceTimersByTimeAsync(15_000);
  expect(server.requests).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(server.requests).toHaveLength(2);
  expect(server.connections).toBe(1);
});

test("pauses between failed attempts grow, and the network's return ends one", async () => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  const listeners = new EventTarget();
  vi.stubGlobal("addEventListener", listeners.addEventListener.bind(listeners));
  vi.stubGlobal("removeEventListener", listeners.removeEventListener.bind(listeners));
  server.refusals.push(503, 503, 503, 503, 429);
  const tab = openTab();
  for (const [after, requests] of [
    [0, 1],
    [1999, 1],
    [1, 2],
    [3999, 2],
    [1, 3],
  ] as const) {
    await vi.advanceTimersByTimeAsync(after);
    expect(server.requests).toHaveLength(requests);
  }
  listeners.dispatchEvent(new Event("online"));
  await vi.advanceTimersByTimeAsync(0);
  expect(server.requests).toHaveLength(4);
  expect(tab.errors).toEqual([]);
});

test("a refusal ends the subscription with its error", async () => {
  server.refusals.push(401);
  const tab = openTab();
  await waitFor(() => expect(tab.errors).toMatchObject([{ status: 401, message: "Refused." }]));
  expect(server.requests).toHaveLength(1);
});

test("without Web Locks each tab has its own connection until it is closed", async () => {
  const tabs = [openTab(), openTab()];
  await waitFor(() => expect(tabs.map((tab) => tab.events)).toEqual([["ready"], ["ready"]]));
  expect(server.connections).toBe(2);
  tabs[0]?.close();
  await waitFor(() => expect(server.connections).toBe(1));
});

test("ten tabs share one connection, and each gets every event once", async () => {
  vi.stubGlobal("navigator", { locks: new MemoryLocks() });
  const tabs = Array.from({ length: 10 }, () => openTab());
  await waitFor(() => {
    for (const tab of tabs) expect(tab.events).toEqual(["ready"]);
  });
  server.publish(deleted("a"));
  server.publish(deleted("b"));
  await waitFor(() => {
    for (const tab of tabs) expect(tab.events).toEqual(["ready", "a", "b"]);
  });
  expect(server.requests).toHaveLength(1);
});

test("when the connected tab closes, another goes on without a gap", async () => {
  vi.stubGlobal("navigator", { locks: new MemoryLocks() });
  // Each tab waits for a digest before it asks for the lock, so only time decides who is connected.
  const first = openTab();
  await waitFor(() => expect(first.events).toEqual(["ready"]));
  const [second, third] = [openTab(), openTab()];
  server.publish(deleted("early"));
  await waitFor(() => {
    for (const tab of [second, third]) expect(tab.events[0]).toBe("ready");
  });
  server.publish(deleted("a"));
  await waitFor(() => {
    for (const tab of [second, third]) expect(tab.events.at(-1)).toBe("a");
  });
  first.close();
  server.publish(deleted("b"));
  await waitFor(() => {
    for (const tab of [second, third]) expect(tab.events.slice(-2)).toEqual(["a", "b"]);
  });
  expect(first.events).not.toContain("b");
  expect(server.connections).toBe(1);
  expect(server.requests).toHaveLength(2);
});

test("tabs with other credentials do not share", async () => {
  vi.stubGlobal("navigator", { locks: new MemoryLocks() });
  const ann = openTab({ headers: { authorization: "Bearer ann" } });
  const bob = openTab({ headers: { authorization: "Bearer bob" } });
  await waitFor(() => expect([ann.events, bob.events]).toEqual([["ready"], ["ready"]]));
  expect(server.connections).toBe(2);
});

test("a tab that was frozen gets what it has missed when it is visible again", async () => {
  vi.stubGlobal("navigator", { locks: new MemoryLocks() });
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  vi.stubGlobal("document", page);
  // The channel of the second tab loses what is sent while it is frozen.
  const frozen: { is: boolean; receive?: ((message: MessageEvent) => void) | null } = { is: false };
  const channels: BroadcastChannel[] = [];
  const Channel = globalThis.BroadcastChannel;
  vi.stubGlobal(
    "BroadcastChannel",
    class extends Channel {
      constructor(name: string) {
        super(name);
        channels.push(this);
      }
    },
  );
  const leader = openTab();
  await waitFor(() => expect(leader.events).toEqual(["ready"]));
  const tab = openTab();
  await waitFor(() => expect(tab.events).toEqual(["ready"]));
  const channel = channels[1];
  if (!channel) throw new Error("the tab has no channel");
  frozen.receive = channel.onmessage;
  channel.onmessage = null;
  for (const chat of ["a", "b"]) server.publish(deleted(chat));
  await waitFor(() => expect(leader.events).toEqual(["ready", "a", "b"]));
  channel.onmessage = frozen.receive;
  page.dispatchEvent(new Event("visibilitychange"));
  await waitFor(() => expect(tab.events).toEqual(["ready", "a", "b"]));
});

test("positions are compared as numbers", () => {
  expect(isAfter("9-1", "10-0")).toBe(false);
  expect(isAfter("10-10", "10-9")).toBe(true);
  expect(isAfter("10-9", "10-9")).toBe(false);
  expect(isAfter("0-0", undefined)).toBe(true);
});
