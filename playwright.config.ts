import { existsSync } from "node:fs";
import { chromium, defineConfig, devices } from "@playwright/test";

const url = "http://127.0.0.1:8765";

/** The Chromium to start: the named one, else Playwright's own, else one the system has. */
function browser(): string | undefined {
  const named = process.env.E2E_CHROMIUM;
  if (named) return named;
  if (existsSync(chromium.executablePath())) return undefined;
  return ["chromium-headless-shell", "chromium", "google-chrome"]
    .map((name) => `/usr/bin/${name}`)
    .find((path) => existsSync(path));
}

const executablePath = browser();

export default defineConfig({
  testDir: "e2e/scenarios",
  forbidOnly: true,
  fullyParallel: true,
  reporter: "list",
  use: {
    baseURL: url,
    trace: "retain-on-failure",
    launchOptions: {
      ...(executablePath ? { executablePath } : {}),
      // Chromium refuses to start its sandbox as root.
      chromiumSandbox: process.getuid?.() !== 0,
    },
  },
  projects: [{ name: "chromium", use: devices["Desktop Chrome"] }],
  webServer: {
    command: ".venv/bin/sluicegate demo --port 8765",
    url,
    reuseExistingServer: false,
    gracefulShutdown: { signal: "SIGTERM", timeout: 3000 },
  },
});
