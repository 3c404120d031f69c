import { readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { test as base, expect, type Page } from "@playwright/test";
import { freePort } from "../demo-server.ts";
import { Service } from "./process.ts";

const ROOT = join(import.meta.dirname, "../../..");
const INSTALLED = join(ROOT, "build/wheel/bin");
const README = readFileSync(join(ROOT, "README.md"), "utf8");

/** The blocks of the README in one language. */
function blocks(language: string): string[] {
  const fences = README.matchAll(/^```(\w+)\n(.*?)^```$/gms);
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
class NewUser {
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

  async close(): Promise<void> {
    await Promise.all(this.#services.map((service) => service.close()));
    await Promise.all(this.#folders.map((folder) => rm(folder, { recursive: true, force: true })));
  }
}

const test = base.extend<{ user: NewUser }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the names of a pattern.
  user: async ({}, use) => {
    const user = new NewUser(await mkdtemp(join(tmpdir(), "sluicegate-home-")));
    await use(user);
    await user.close();
  },
});

/** Ask on the page that the server itself serves, and approve. */
async function payOnChatPage(page: Page, port: number, outcome: string): Promise<void> {
  await page.goto(`http://127.0.0.1:${port}`);
  const message = page.getByRole("textbox", { name: "Message" });
  await message.fill("Pay Ada 5 euros");
  await message.press("Enter");
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await expect(page.getByRole("main")).toContainText(outcome);
}

test("with a key, the server pays once the card on its page is approved", async ({
  page,
  user,
}) => {
  const { port } = await user.serveModel();

  await payOnChatPage(page, port, "Ada is paid.");
});

test("the page under Vite allows the call, and the answer appears", async ({ page, user }) => {
  const { port } = await user.serveModel();
  await page.goto(await user.page(port));

  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByRole("button", { name: "Allow pay" }).click();

  await expect(page.getByText("Ada is paid.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Allow pay" })).toHaveCount(0);
});

test("a key that the provider does not know is named in the log, and the page shows an error", async ({
  page,
  user,
}) => {
  const { port, service } = await user.serveModel("invalid-key");
  await page.goto(await user.page(port));

  await page.getByRole("button", { name: "Ask" }).click();

  await expect(page.getByRole("alert")).toContainText("error");
  await expect.poll(() => service.output).toContain("API key not valid");
  expect(service.output).toContain("The key is in GOOGLE_API_KEY.");
  expect(service.output).not.toContain("Traceback");
  expect(await page.content()).not.toContain("API key not valid");
});

test("without a key, the server of the README says so at its start", async ({ user }) => {
  await writeFile(join(user.home, "server.py"), blocks("python").join(""));
  const port = await freePort();

  const server = await user.start(
    ["uvicorn", "server:app", "--port", String(port)],
    new RegExp(`http://127\\.0\\.0\\.1:${port}`),
  );

  expect(server.output).toContain("GOOGLE_API_KEY");
});

test("without a key, a new project pays once its card is approved", async ({ page, user }) => {
  const { port } = await user.serve("sluicegate dev");

  await payOnChatPage(page, port, "Ada");
});
