import { existsSync } from "node:fs";
import { join } from "node:path";
import { chromium, defineConfig, devices } from "@playwright/test";
import { microphoneFile } from "./e2e/scenarios/fake-microphone.ts";

const unpacked = join(import.meta.dirname, ".venv", "chromium");

/** The path of Chromium: E2E_CHROMIUM, Playwright's own, the system's, or the unpacked one. */
function findBrowser(): string | undefined {
  const configured = process.env.E2E_CHROMIUM;
  if (configured) return configured;
  if (existsSync(chromium.executablePath())) return undefined;
  return [
    ...["chromium-headless-shell", "chromium", "google-chrome"].map((name) => `/usr/bin/${name}`),
    join(unpacked, "chromium"),
  ].find((path) => existsSync(path));
}

const executablePath = findBrowser();

// The unpacked Chromium has its own libraries and fonts.
if (executablePath?.startsWith(unpacked)) {
  process.env.LD_LIBRARY_PATH = join(unpacked, "al2023", "lib");
  process.env.FONTCONFIG_PATH = join(unpacked, "fonts");
}

const launchOptions = executablePath ? { executablePath } : {};

export default defineConfig({
  testDir: "e2e/scenarios",
  forbidOnly: true,
  fullyParallel: true,
  workers: 2,
  // Only a defect reaches the limits, not a busy machine.
  timeout: 180_000,
  expect: { timeout: 30_000 },
  reporter: "list",
  use: {
    // Screenshots would take a sixth of the time of a test.
    trace: { mode: "retain-on-failure", screenshots: false },
    // Videos require Playwright's own browser.
    video: executablePath ? "off" : "retain-on-failure",
    launchOptions,
  },
  projects: [
    { name: "chromium", testIgnore: /voice/, use: devices["Desktop Chrome"] },
    {
      name: "voice",
      testMatch: /voice/,
      use: {
        ...devices["Desktop Chrome"],
        launchOptions: {
          ...launchOptions,
          args: [
            "--autoplay-policy=no-user-gesture-required",
            "--use-fake-device-for-media-stream",
            "--use-fake-ui-for-media-stream",
            `--use-file-for-fake-audio-capture=${microphoneFile(440)}%noloop`,
          ],
        },
      },
    },
  ],
});
