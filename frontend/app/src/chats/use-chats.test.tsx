import { act, renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { createProvider } from "../../testing/render.tsx";
import { useChats } from "./use-chats.ts";

const PAGE_SIZE = 2;

/** Stub a server with a number of chats, two on a page. */
function stubServer(count: number) {
  const state = { count };
  vi.stubGlobal("fetch", async (url: string) => {
    const params = new URL(url, location.href).searchParams;
    const query = params.get("q") ?? "";
    const all = Array.from({ length: state.count }, (_, index) => ({
      id: `c${index}`,
      title: `Chat ${index}`,
      updatedAt: "2026-01-02T03:04:05Z",
      pendingApprovals: 0,
      status: "ready",
    })).filter(({ title }) => title.includes(query));
    const start = Number(params.get("after") ?? 0);
    const end = start + PAGE_SIZE;
    const next = end < all.length ? String(end) : null;
    return Response.json({ chats: all.slice(start, end), next });
  });
  return state;
}

const ids = (chats: readonly { id: string }[]) => chats.map(({ id }) => id);

afterEach(() => {
  vi.unstubAllGlobals();
});

test("the list grows by a page and keeps its length on refresh", async () => {
  const state = stubServer(5);
  const { result } = renderHook(() => useChats(""), { wrapper: createProvider() });
  await waitFor(() => expect(ids(result.current.chats)).toEqual(["c0", "c1"]));
  await act(() => result.current.loadMore());
  await waitFor(() => expect(ids(result.current.chats)).toEqual(["c0", "c1", "c2", "c3"]));
  state.count = 9;
  await act(() => result.current.refresh());
  expect(result.current.chats).toHaveLength(4);
  await act(() => result.current.loadMore());
  await waitFor(() => expect(result.current.chats).toHaveLength(6));
});

test("a complete list has no next page", async () => {
  stubServer(3);
  const { result } = renderHook(() => useChats(""), { wrapper: createProvider() });
  await waitFor(() => expect(result.current.hasMore).toBe(true));
  await act(() => result.current.loadMore());
  await waitFor(() => expect(result.current.hasMore).toBe(false));
});

test("another query loads its first page", async () => {
  stubServer(12);
  const { result, rerender } = renderHook(({ query }) => useChats(query), {
    initialProps: { query: "" },
    wrapper: createProvider(),
  });
  await waitFor(() => expect(result.current.chats).toHaveLength(2));
  await act(() => result.current.loadMore());
  rerender({ query: "1" });
  await waitFor(() => expect(ids(result.current.chats)).toEqual(["c1", "c10"]));
});

test("a refusal with 401 marks the list as unauthenticated", async () => {
  vi.stubGlobal("fetch", async () => new Response("Sign in first.", { status: 401 }));
  const { result } = renderHook(() => useChats(""), { wrapper: createProvider() });
  await waitFor(() => expect(result.current.isUnauthenticated).toBe(true));
  expect(result.current.problem).toBe("Sign in first.");
});

test("a refused list stays refused while it is asked for again", async () => {
  const requests: ((response: Response) => void)[] = [];
  vi.stubGlobal("fetch", () => new Promise((resolve) => requests.push(resolve)));
  const seen: boolean[] = [];
  const { result } = renderHook(
    () => {
      const chats = useChats("");
      seen.push(chats.isUnauthenticated);
      return chats;
    },
    { wrapper: createProvider() },
  );
  const refuse = () => requests.shift()?.(new Response("Sign in first.", { status: 401 }));
  await waitFor(() => expect(requests).toHaveLength(1));
  refuse();
  await waitFor(() => expect(result.current.isUnauthenticated).toBe(true));
  seen.length = 0;
  act(() => result.current.refresh());
  await waitFor(() => expect(requests).toHaveLength(1));
  expect(result.current.isUnauthenticated).toBe(true);
  refuse();
  await waitFor(() => expect(requests).toHaveLength(0));
  act(() => result.current.refresh());
  await waitFor(() => expect(requests).toHaveLength(1));
  expect(seen).not.toContain(false);
  requests.shift()?.(Response.json({ chats: [], next: null }));
  await waitFor(() => expect(result.current.isUnauthenticated).toBe(false));
  expect(result.current.problem).toBeUndefined();
});
