import { existsSync } from "node:fs";
import { join } from "node:path";
import { chromium, defineConfig, devices } from "@playwright/test";

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

const port = 8765;
const url = `http://127.0.0.1:${port}`;

export default defineConfig({
  testDir: "e2e/scenarios",
  forbidOnly: true,
  fullyParallel: true,
  reporter: "list",
  use: {
    baseURL: url,
    trace: "retain-on-failure",
    video: "retain-on-failure",
    launchOptions: executablePath ? { executablePath } : {},
  },
  projects: [{ name: "chromium", use: devices["Desktop Chrome"] }],
  webServer: {
    command: `.venv/bin/sluicegate demo --port ${port}`,
    url,
    reuseExistingServer: false,
    gracefulShutdown: { signal: "SIGTERM", timeout: 3000 },
  },
});
