import { existsSync } from "node:fs";
import { join } from "node:path";
import { chromium, defineConfig, devices } from "@playwright/test";
import { microphoneFile } from "./e2e/scenarios/microphone.ts";

const unpacked = join(import.meta.dirname, ".venv", "chromium");

/** The Chromium to start: the named one, else Playwright's own, else the system's, else the unpacked one. */
function browser(): string | undefined {
  const named = process.env.E2E_CHROMIUM;
  if (named) return named;
  if (existsSync(chromium.executablePath())) return undefined;
  return [
    ...["chromium-headless-shell", "chromium", "google-chrome"].map((name) => `/usr/bin/${name}`),
    join(unpacked, "chromium"),
  ].find((path) => existsSync(path));
}

const executablePath = browser();

// The unpacked one brings its libraries and fonts.
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
  // A busy machine is slow; what passes does not wait for as long.
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: "list",
  use: {
    trace: "retain-on-failure",
    // What draws videos comes with Playwright's own browser only.
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
