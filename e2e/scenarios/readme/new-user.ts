import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { test as base, expect } from "@playwright/test";
import { freePort } from "../demo-server.ts";
import { Service } from "./process.ts";

export const ROOT = join(import.meta.dirname, "../../..");
const INSTALLED = join(ROOT, "build/wheel/bin");
const NEXT = join(ROOT, "e2e/next");
const LAYOUT = `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>;
}
`;
const README = readFileSync(join(ROOT, "README.md"), "utf8");

/** The blocks of a document in one language; of the README unless another is given. */
export function blocks(language: string, document = README): string[] {
  const fences = document.matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return [...fences].filter(([, found]) => found === language).map(([, , code = ""]) => code);
}

/** The commands of the block that contains a text, in an environment that is active already. */
function shell(text: string, port: number): string {
  const block = blocks("sh").find((code) => code.includes(text));
  if (block === undefined) throw new Error(`The README prints no block with ${text}.`);
  const [last = "", ...rest] = block.trimEnd().split("\n").reverse();
  return [...rest.reverse(), `exec ${last} --port ${port}`].join("\n");
}

/** A user with an empty home, whose processes end with the test. */
export class NewUser {
  readonly #services: Service[] = [];
  readonly #folders: string[] = [];
  readonly env: Record<string, string>;

  constructor(readonly home: string) {
    this.#folders.push(home);
    this.env = {
      HOME: home,
      PATH: [INSTALLED, dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter),
      NO_COLOR: "1",
    };
  }

  async start(command: string[], ready: RegExp, env = {}, cwd = this.home): Promise<Service> {
    const service = await Service.start(command, ready, { cwd, env: { ...this.env, ...env } });
    this.#services.push(service);
    return service;
  }

  /** Run a block of the README that serves, on a free port; its `url` is that of the server. */
  async serve(text: string, env = {}): Promise<{ service: Service; port: number }> {
    const port = await freePort();
    const service = await this.start(
      ["sh", "-ec", shell(text, port)],
      new RegExp(`http://127\\.0\\.0\\.1:${port}`),
      env,
    );
    return { service, port };
  }

  /** Start the server of the README, whose model is at an endpoint of the tests. */
  async serveModel(...options: string[]): Promise<{ service: Service; port: number }> {
    await writeFile(join(this.home, "server.py"), blocks("python").join(""));
    const command = [join(ROOT, ".venv/bin/python"), "-m", "tests.docs.readme_provider"];
    const provider = await this.start(
      [...command, ...options],
      /http.*\n/,
      {},
      join(ROOT, "backend"),
    );
    return this.serve("uvicorn server:app", { GOOGLE_GEMINI_BASE_URL: provider.output.trim() });
  }

  /** Start the page of the README with Vite; returns its URL. */
  async page(api: number): Promise<string> {
    // Below the chat page, so that its packages are found.
    const folder = await mkdtemp(join(ROOT, "frontend/app/.readme-"));
    this.#folders.push(folder);
    await cp(join(import.meta.dirname, "vite-template"), folder, { recursive: true });
    await mkdir(join(folder, "src"), { recursive: true });
    await writeFile(join(folder, "src/App.tsx"), blocks("tsx").join(""));
    const config = blocks("ts").join("");
    expect(config).toContain("127.0.0.1:8000");
    await writeFile(join(folder, "vite.config.ts"), config.replace("8000", String(api)));
    const port = await freePort();
    const vite = join(ROOT, "node_modules/.bin/vite");
    const url = `http://127.0.0.1:${port}`;
    const options = ["--host", "127.0.0.1", "--port", String(port)];
    await this.start([vite, ...options], new RegExp(url), {}, folder);
    return url;
  }

  /** Build the page of the README with Next.js as its guide prints it, and start it; returns its URL. */
  async nextPage(api: number): Promise<string> {
    const guide = readFileSync(join(ROOT, "docs/how-to/next-js.md"), "utf8");
    await rm(join(NEXT, ".next"), { recursive: true, force: true });
    await mkdir(join(NEXT, "app"), { recursive: true });
    await writeFile(join(NEXT, "next.config.ts"), blocks("ts", guide).join(""));
    await writeFile(join(NEXT, "app/layout.tsx"), LAYOUT);
    await writeFile(join(NEXT, "app/page.tsx"), `"use client";\n\n${blocks("tsx").join("")}`);
    const next = join(NEXT, "node_modules/.bin/next");
    const env = { AGENT_URL: `http://127.0.0.1:${api}`, NEXT_TELEMETRY_DISABLED: "1" };
    await promisify(execFile)(next, ["build"], { cwd: NEXT, env: { ...this.env, ...env } });
    const port = await freePort();
    await this.start([next, "start", "--port", String(port)], /Ready in/, env, NEXT);
    return `http://localhost:${port}`;
  }

  async close(): Promise<void> {
    await Promise.all(this.#services.map((service) => service.close()));
    await Promise.all(this.#folders.map((folder) => rm(folder, { recursive: true, force: true })));
  }
}

export const test = base.extend<{ user: NewUser }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the names of a pattern.
  user: async ({}, use) => {
    const user = new NewUser(await mkdtemp(join(tmpdir(), "sluicegate-home-")));
    await use(user);
    await user.close();
  },
  // The browser leaves before the servers end: `next start` waits for every open connection, also
  // for one that the browser never used.
  page: async ({ user: _, page }, use) => use(page),
});
