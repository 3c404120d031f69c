import { expect, test, vi } from "vitest";
import { CLIENTS, VERSIONS } from "../testing/ai-sdk-versions.ts";

test.each(VERSIONS)("the major of ai %s is detected", async (version) => {
  vi.resetModules();
  vi.doMock("ai", () => CLIENTS[version]);
  const { installedMajor } = await import("./installed-major.ts");
  expect(await installedMajor()).toBe(version.startsWith("6") ? 6 : 7);
  vi.doUnmock("ai");
});
