import { screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { renderPage } from "../../testing/render.tsx";
import type { ChatSummary } from "../api.ts";
import { ChatList } from "./chat-list.tsx";
import { useChats } from "./use-chats.ts";

const CHAT = { id: "c1", title: "Pay Ada", updatedAt: "2026-01-02T03:04:05Z" };

function List({ query }: { readonly query: string }) {
  const noop = () => {};
  const chats = useChats(query);
  return (
    <ChatList chats={chats} query={query} onQuery={noop} openId="" onOpen={noop} onNew={noop} />
  );
}

function renderList(chats: readonly ChatSummary[], query = "") {
  vi.stubGlobal("fetch", async () => Response.json({ chats, next: null }));
  renderPage(<List query={query} />);
}

afterEach(() => {
  vi.unstubAllGlobals();
});

test("a chat that is answered and one that waits are marked", async () => {
  renderList([
    { ...CHAT, pendingApprovals: 0, status: "running" },
    { ...CHAT, id: "c2", pendingApprovals: 2, status: "waiting" },
    { ...CHAT, id: "c3", pendingApprovals: 0, status: "ready" },
  ]);
  const [running, waiting, ready] = await screen.findAllByRole("link");
  expect(running?.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("Running");
  expect(waiting?.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("2 approvals wait");
  expect(ready?.querySelector("[role=img]")).toBeNull();
});

test.each([
  ["", "No chats yet. Your first message starts one."],
  ["Bob", "No chat has this in its title."],
])("an empty list for the query %j says so", async (query, sentence) => {
  renderList([], query);
  expect(await screen.findByText(sentence)).toBeTruthy();
});
