import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { effectsOf } from "./servers.ts";

test("the effects of a chat are read while a tool of another chat records its own", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sluicegate-effects-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const effect = { tool: "pay", args: { amount: 10 }, chat: "mine" };
  const others = JSON.stringify({ ...effect, chat: "others" });
  const effects = join(folder, "effects");
  await writeFile(effects, `${JSON.stringify(effect)}\n${others.slice(0, 20)}`);
  const server = { url: "http://127.0.0.1", effects, holds: folder, log: join(folder, "log") };
  expect(await effectsOf(server, "mine")).toEqual([effect]);
});
