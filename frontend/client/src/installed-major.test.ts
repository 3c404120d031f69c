import { expect, test, vi } from "vitest";
import { CLIENTS, VERSIONS } from "../testing/scripted-chat.ts";

test.each(VERSIONS)("the major of ai %s is detected", async (version) => {
  vi.resetModules();
  vi.doMock("ai", () => CLIENTS[version]);
  const { installedMajor } = await import("./installed-major.ts");
  expect(await installedMajor()).toBe(version.startsWith("6") ? 6 : 7);
  vi.doUnmock("ai");
});
