import { expect, test } from "vitest";
import { stopChat } from "./real-stop.ts";
import { RequestRefused } from "./refusals.ts";

interface Seen {
  readonly address: string;
  readonly init: RequestInit | undefined;
}

function answering(response: () => Response): { seen: Seen[]; fetch: typeof fetch } {
  const seen: Seen[] = [];
  return {
    seen,
    fetch: async (address, init) => {
      seen.push({ address: String(address), init });
      return response();
    },
  };
}

const stopped = () => new Response(null, { status: 204 });

test.each([
  { api: "/api/chat", chatId: "c1", address: "/api/chat/c1/stop" },
  { api: "/api/chat/", chatId: "c1", address: "/api/chat/c1/stop" },
  {
    api: "https://example.org/chat?key=1#x",
    chatId: "c1",
    address: "https://example.org/chat/c1/stop?key=1#x",
  },
  { api: "/api/chat", chatId: "a/b c?d", address: "/api/chat/a%2Fb%20c%3Fd/stop" },
  { api: "/api/chat", chatId: "...", address: "/api/chat/.../stop" },
])("stops $chatId below $api at $address", async ({ api, chatId, address }) => {
  const { seen, fetch } = answering(stopped);
  await stopChat({ api, chatId, fetch });

  expect(seen).toEqual([{ address, init: { method: "POST", headers: {} } }]);
});

test.each([
  { title: "an object", headers: { Authorization: "Bearer x" } },
  { title: "Headers", headers: new Headers({ Authorization: "Bearer x" }) },
  { title: "a function", headers: () => ({ Authorization: "Bearer x" }) },
  { title: "a promise", headers: async () => new Headers({ authorization: "Bearer x" }) },
])("sends the headers of $title", async ({ headers }) => {
  const { seen, fetch } = answering(stopped);
  await stopChat({ api: "/api/chat", chatId: "c1", headers, credentials: "include", fetch });

  expect(seen[0]?.init?.headers).toEqual({ authorization: "Bearer x" });
  expect(seen[0]?.init?.credentials).toBe("include");
});

test("says why the server refuses", async () => {
  const headers = { "x-error-code": "origin" };
  const { fetch } = answering(() => new Response("Not from here.\n", { status: 403, headers }));
  const refused = await stopChat({ api: "/api/chat", chatId: "c1", fetch }).catch((error) => error);

  expect(refused).toBeInstanceOf(RequestRefused);
  expect(refused).toMatchObject({ message: "Not from here.", status: 403, code: "origin" });
});

test("has a sentence of its own for a refusal without one", async () => {
  const { fetch } = answering(() => new Response("", { status: 502 }));
  await expect(stopChat({ api: "/api/chat", chatId: "c1", fetch })).rejects.toMatchObject({
    message: "The chat could not be stopped.",
    status: 502,
    code: undefined,
  });
});

test.each(["", ".", ".."])("asks no other address for the chat id '%s'", async (chatId) => {
  const { seen, fetch } = answering(stopped);
  await expect(stopChat({ api: "/api/chat", chatId, fetch })).rejects.toThrow("cannot have the id");
  expect(seen).toEqual([]);
});
