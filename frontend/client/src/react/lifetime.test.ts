import { expect, test } from "vitest";
import { Page } from "../../testing/hook.ts";
import { ANSWER, turn } from "../testing/chunks.ts";
import { ControlledStream, ScriptedServer, streamOf } from "../testing/scripted-server.ts";

const USER = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay." }] };

test("another id is another chat, and the previous one is disconnected", async () => {
  const server = new ScriptedServer();
  const stream = new ControlledStream();
  server.postResponders.push(stream.respond);
  const page = new Page(server);
  await page.act((chat) => void chat.sendMessage({ text: "Go." }));
  await page.waitFor(() => expect(server.posts).toHaveLength(1));
  page.rendered.rerender({ id: "other", messages: [USER] as never });
  await page.waitFor(() => expect(page.chat.id).toBe("other"));

  expect(page.chat.messages).toEqual([USER]);
  await page.waitFor(() => expect(server.posts[0]?.signal?.aborted).toBe(true));
});

test("unmounting disconnects from the stream", async () => {
  const server = new ScriptedServer();
  const stream = new ControlledStream();
  server.postResponders.push(stream.respond);
  const page = new Page(server);
  await page.act((chat) => void chat.sendMessage({ text: "Go." }));
  page.rendered.unmount();
  await page.waitFor(() => expect(server.posts[0]?.signal?.aborted).toBe(true));

  expect(server.log.filter((line) => line.endsWith("/stop"))).toEqual([]);
});

test("release, headers and body are those of the last rendering", async () => {
  const server = new ScriptedServer();
  const next = { type: "start", messageId: "m2" };
  server.postResponders.push(streamOf(turn(ANSWER)), streamOf(turn(next, ANSWER)));
  const page = new Page(server, { headers: { authorization: "Bearer 1" } });
  await page.act((chat) => chat.sendMessage({ text: "Go." }));
  await page.waitForStatus();
  const changed = { release: "progressive", headers: { authorization: "Bearer 2" } } as const;
  page.rendered.rerender({ ...changed, body: { project: 1 } });
  await page.act((chat) => chat.sendMessage({ text: "Go on." }));
  await page.waitForStatus();

  const [one, two] = server.posts;
  expect(one?.headers).toMatchObject({ authorization: "Bearer 1" });
  expect(one?.headers).not.toHaveProperty("x-release");
  expect(two?.headers).toMatchObject({ authorization: "Bearer 2", "x-release": "progressive" });
  expect(two?.body.project).toBe(1);
  expect(page.chat.messages).toHaveLength(4);
});

test.each([
  ["nothing runs", () => new Response(null, { status: 204 }), 1],
  ["a turn runs", streamOf(turn(ANSWER)), 2],
])("a resume is pending until the server has said that %s", async (_, respond, messages) => {
  const server = new ScriptedServer();
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  server.onResume = async (request) => {
    await released;
    return respond(request);
  };
  const page = new Page(server, { messages: [USER] as never });
  await page.waitFor(() => expect(page.chat.isResumePending).toBe(true));
  expect(page.chat.status).toBe("ready");
  await page.act(() => release());
  await page.waitFor(() => expect(page.chat.isResumePending).toBe(false));
  await page.waitFor(() => expect(page.chat.messages).toHaveLength(messages));
});
