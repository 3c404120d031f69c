import { expect, test } from "vitest";
import { loadGrants, revokeGrant, stopChat } from "./chat-api.ts";
import { RequestRefused } from "./refusals.ts";

interface Request {
  readonly url: string;
  readonly init: RequestInit | undefined;
}

function recordingFetch(response: () => Response): { requests: Request[]; fetch: typeof fetch } {
  const requests: Request[] = [];
  return {
    requests,
    fetch: async (url, init) => {
      requests.push({ url: String(url), init });
      return response();
    },
  };
}

const stopped = () => new Response(null, { status: 204 });

test.each([
  { api: "/api/chat", chatId: "c1", url: "/api/chat/c1/stop" },
  { api: "/api/chat/", chatId: "c1", url: "/api/chat/c1/stop" },
  {
    api: "https://example.org/chat?key=1#x",
    chatId: "c1",
    url: "https://example.org/chat/c1/stop?key=1#x",
  },
  { api: "/api/chat", chatId: "a/b c?d", url: "/api/chat/a%2Fb%20c%3Fd/stop" },
  { api: "/api/chat", chatId: "...", url: "/api/chat/.../stop" },
])("stops $chatId of $api at $url", async ({ api, chatId, url }) => {
  const { requests, fetch } = recordingFetch(stopped);
  await stopChat({ api, chatId, fetch });

  expect(requests).toEqual([{ url, init: { method: "POST", headers: {} } }]);
});

test.each([
  { title: "an object", headers: { Authorization: "Bearer x" } },
  { title: "Headers", headers: new Headers({ Authorization: "Bearer x" }) },
  { title: "a function", headers: () => ({ Authorization: "Bearer x" }) },
  { title: "a promise", headers: async () => new Headers({ authorization: "Bearer x" }) },
])("sends the headers of $title", async ({ headers }) => {
  const { requests, fetch } = recordingFetch(stopped);
  await stopChat({ api: "/api/chat", chatId: "c1", headers, credentials: "include", fetch });

  expect(requests[0]?.init?.headers).toEqual({ authorization: "Bearer x" });
  expect(requests[0]?.init?.credentials).toBe("include");
});

test("rejects with the refusal of the server", async () => {
  const headers = { "x-error-code": "origin" };
  const { fetch } = recordingFetch(
    () => new Response("Not from here.\n", { status: 403, headers }),
  );
  const refusal = await stopChat({ api: "/api/chat", chatId: "c1", fetch }).catch((error) => error);

  expect(refusal).toBeInstanceOf(RequestRefused);
  expect(refusal).toMatchObject({ message: "Not from here.", status: 403, code: "origin" });
});

test("has a default message for a refusal without one", async () => {
  const { fetch } = recordingFetch(() => new Response("", { status: 502 }));
  await expect(stopChat({ api: "/api/chat", chatId: "c1", fetch })).rejects.toMatchObject({
    message: "The chat could not be stopped.",
    status: 502,
    code: undefined,
  });
});

test.each(["", ".", ".."])("sends no request for the chat id '%s'", async (chatId) => {
  const { requests, fetch } = recordingFetch(stopped);
  await expect(stopChat({ api: "/api/chat", chatId, fetch })).rejects.toThrow("cannot have the id");
  expect(requests).toEqual([]);
});

test("the grants of a chat are loaded, and one is revoked by its id", async () => {
  const grant = { id: "grant-1", tool: "pay", agent: "shop", where: { recipient: "ann" } };
  const loading = recordingFetch(() => Response.json({ grants: [grant] }));
  const options = { apiUrl: "/api", chatId: "c1", headers: { Authorization: "Bearer x" } };
  expect(await loadGrants({ ...options, fetch: loading.fetch })).toEqual([grant]);
  const revoking = recordingFetch(stopped);
  await revokeGrant({ ...options, fetch: revoking.fetch, grantId: "grant/1" });

  const headers = { authorization: "Bearer x" };
  expect(loading.requests).toEqual([
    { url: "/api/chats/c1/grants", init: { method: "GET", headers } },
  ]);
  expect(revoking.requests).toEqual([
    { url: "/api/chats/c1/grants/grant%2F1", init: { method: "DELETE", headers } },
  ]);
});

test("a refusal of grants is rejected", async () => {
  const { fetch } = recordingFetch(() => new Response("There is no such chat.", { status: 404 }));
  const options = { apiUrl: "/api", chatId: "c1", fetch };
  await expect(loadGrants(options)).rejects.toThrow("There is no such chat.");
  await expect(revokeGrant({ ...options, grantId: "grant-1" })).rejects.toBeInstanceOf(
    RequestRefused,
  );
});
