import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import * as ai6 from "./ai-6/client.ts";
import * as ai6Floor from "./ai-6-floor/client.ts";
import * as ai7 from "./ai-7/client.ts";
import * as ai7Floor from "./ai-7-floor/client.ts";

/** Version and folder of a package as seen from a folder. */
function seen(name: string, from: string): { version: string; folder: string } {
  const manifest = createRequire(join(from, "anything.js")).resolve(`${name}/package.json`);
  return {
    version: JSON.parse(readFileSync(manifest, "utf8")).version,
    folder: dirname(manifest),
  };
}

/** An instance of a class whose constructor types differ between the majors. */
function make<Made>(kind: unknown, options: object): Made {
  return new (kind as new (given: object) => Made)(options);
}

describe.each([
  { folder: "ai-6", client: ai6, ai: "6.0.323", react: "3.0.326" },
  { folder: "ai-6-floor", client: ai6Floor, ai: "6.0.290", react: "3.0.293" },
  { folder: "ai-7", client: ai7, ai: "7.0.173", react: "4.0.177" },
  { folder: "ai-7-floor", client: ai7Floor, ai: "7.0.138", react: "4.0.141" },
])("the client $folder", ({ folder, client, ai, react }) => {
  const here = join(import.meta.dirname, folder);

  test("is the version its name says", () => {
    expect(seen("ai", here).version).toBe(ai);
    expect(seen("@ai-sdk/react", here).version).toBe(react);
  });

  test("has one copy of ai, the one its Chat uses", () => {
    const hook = seen("@ai-sdk/react", here);
    expect(seen("ai", hook.folder).folder).toBe(seen("ai", here).folder);
  });

  test("brings a Chat and a transport that start ready", () => {
    const transport = make(client.DefaultChatTransport, { api: "http://127.0.0.1:9/" });
    expect(make<{ status: string }>(client.Chat, { transport }).status).toBe("ready");
  });
});

test("only the newer major brings a WebSocket transport", () => {
  expect("WebSocketChatTransport" in ai7).toBe(true);
  expect("WebSocketChatTransport" in ai7Floor).toBe(true);
  expect("WebSocketChatTransport" in ai6).toBe(false);
  expect("WebSocketChatTransport" in ai6Floor).toBe(false);
});
