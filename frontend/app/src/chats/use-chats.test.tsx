import { act, renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { useChats } from "./use-chats.ts";

const PAGE = 2;

/** A server with so many chats, two to a page. */
function server(count: number) {
  const state = { count };
  vi.stubGlobal("fetch", async (address: string) => {
    const asked = new URL(address, location.href).searchParams;
    const query = asked.get("q") ?? "";
    const all = Array.from({ length: state.count }, (_, index) => ({
      id: `c${index}`,
      title: `Chat ${index}`,
      updatedAt: "2026-01-02T03:04:05Z",
      pendingApprovals: 0,
    })).filter(({ title }) => title.includes(query));
    const start = Number(asked.get("after") ?? 0);
    const end = start + PAGE;
    const next = end < all.length ? String(end) : null;
    return Response.json({ chats: all.slice(start, end), next });
  });
  return state;
}

const ids = (chats: readonly { id: string }[]) => chats.map(({ id }) => id);

afterEach(() => {
  vi.unstubAllGlobals();
});

test("the list grows by a page, and stays as long when it is loaded anew", async () => {
  const state = server(5);
  const { result } = renderHook(() => useChats(""));
  await waitFor(() => expect(ids(result.current.chats)).toEqual(["c0", "c1"]));
  await act(() => result.current.more());
  expect(ids(result.current.chats)).toEqual(["c0", "c1", "c2", "c3"]);
  state.count = 9;
  await act(() => result.current.refresh());
  expect(result.current.chats).toHaveLength(4);
  await act(() => result.current.more());
  expect(result.current.chats).toHaveLength(6);
});

test("a list that has come to its end says so", async () => {
  server(3);
  const { result } = renderHook(() => useChats(""));
  await waitFor(() => expect(result.current.next).toBe("2"));
  await act(() => result.current.more());
  expect(result.current.next).toBeNull();
});

test("another search begins at its first page", async () => {
  server(12);
  const { result, rerender } = renderHook(({ query }) => useChats(query), {
    initialProps: { query: "" },
  });
  await waitFor(() => expect(result.current.chats).toHaveLength(2));
  await act(() => result.current.more());
  rerender({ query: "1" });
  await waitFor(() => expect(ids(result.current.chats)).toEqual(["c1", "c10"]));
});

test("a server that wants to know who asks makes a stranger of the person", async () => {
  vi.stubGlobal("fetch", async () => new Response("Sign in first.", { status: 401 }));
  const { result } = renderHook(() => useChats(""));
  await waitFor(() => expect(result.current.isStranger).toBe(true));
  expect(result.current.problem).toBe("Sign in first.");
});
