import { expect, test } from "vitest";
import { ANSWER, turn } from "../../testing/chunks.ts";
import { FakeServer, Feed, streams } from "../../testing/fake-server.ts";
import { Page } from "../../testing/hook.ts";

const USER = { id: "u1", role: "user", parts: [{ type: "text", text: "Pay." }] };

test("another id is another chat, and the one before is left", async () => {
  const server = new FakeServer();
  const feed = new Feed();
  server.posts.push(feed.say);
  const page = new Page(server);
  await page.does((chat) => void chat.sendMessage({ text: "Go." }));
  await page.shows(() => expect(server.sent).toHaveLength(1));
  page.rendered.rerender({ id: "other", messages: [USER] as never });
  await page.shows(() => expect(page.chat.id).toBe("other"));

  expect(page.chat.messages).toEqual([USER]);
  await page.shows(() => expect(server.sent[0]?.signal?.aborted).toBe(true));
});

test("a page that goes leaves the stream", async () => {
  const server = new FakeServer();
  const feed = new Feed();
  server.posts.push(feed.say);
  const page = new Page(server);
  await page.does((chat) => void chat.sendMessage({ text: "Go." }));
  page.rendered.unmount();
  await page.shows(() => expect(server.sent[0]?.signal?.aborted).toBe(true));

  expect(server.log.filter((line) => line.endsWith("/stop"))).toEqual([]);
});

test("release and headers are those of the last rendering", async () => {
  const server = new FakeServer();
  const next = { type: "start", messageId: "m2" };
  server.posts.push(streams(turn(ANSWER)), streams(turn(next, ANSWER)));
  const page = new Page(server, { headers: { authorization: "Bearer 1" } });
  await page.does((chat) => chat.sendMessage({ text: "Go." }));
  await page.rests();
  const changed = { release: "progressive", headers: { authorization: "Bearer 2" } } as const;
  page.rendered.rerender({ ...changed, body: { project: 1 } });
  await page.does((chat) => chat.sendMessage({ text: "Go on." }));
  await page.rests();

  const [one, two] = server.sent;
  expect(one?.headers).toMatchObject({ authorization: "Bearer 1" });
  expect(one?.headers).not.toHaveProperty("x-release");
  expect(two?.headers).toMatchObject({ authorization: "Bearer 2", "x-release": "progressive" });
  expect(two?.body.project).toBe(1);
  expect(page.chat.messages).toHaveLength(4);
});
