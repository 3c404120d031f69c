import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join, resolve as resolvePath } from "node:path";

/** The approval style on the wire; a setting of the server, so each style has its own server. */
export type Style = "call" | "confirmation";

export const STYLES: readonly Style[] = ["call", "confirmation"];

/** The URL and the files of a running server. */
export interface ServerInfo {
  readonly url: string;
  /** The file in which the tools record their effects. */
  readonly effects: string;
  /** A folder; a file named after a chat's id pauses the model of that chat. */
  readonly holds: string;
  readonly log: string;
}

export interface Server extends ServerInfo {
  stop(): Promise<void>;
}

/** A sample that one server serves in both styles, each under a path of its own. */
export type Sample =
  | "coordinator"
  | "agent_as_tool"
  | "loop"
  | "human_in_the_loop"
  | "together"
  | "workflow";

const ROOT = resolvePath(import.meta.dirname, "../../..");
const AGENT = join(ROOT, "backend/tests/agents/conformance_agent.py");
const SCRIPT = join(ROOT, "backend/tests/agents/conformance.yaml");
// Only a defect reaches it, not a busy machine.
const START_TIMEOUT = 240_000;

/** The time to live of an approval of `pay_soon`, in seconds. */
export const SHORT_TTL = 0.5;

/**
 * A machine that is busy with other work stands still for longer than a lease lasts, and a client then
 * needs minutes for its decision. No story is about that.
 */
const PATIENCE = { SLUICEGATE_LEASE_TTL: "120", SLUICEGATE_LIVE_APPROVAL_TTL: "900" };

/** Start a server of the conformance agent on a free port, with its files in `folder`. */
export async function startServer(
  style: Style,
  folder: string,
  extraOptions: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const effects = join(folder, `${style}.effects`);
  const holds = join(folder, `${style}-holds`);
  const log = join(folder, `${style}.log`);
  await mkdir(holds);
  const binary = process.env.SLUICEGATE_BIN ?? join(ROOT, ".venv/bin/sluicegate");
  const options = {
    "--host": "127.0.0.1",
    "--port": "0",
    "--model-script": SCRIPT,
    "--sessions": `sqlite+aiosqlite:///${join(folder, `${style}.db`)}`,
    "--artifacts": `file:${join(folder, `${style}-artifacts`)}`,
    "--approval-style": style,
    "--auth": "header:x-user",
    "--page-tool": "scroll",
    ...extraOptions,
  };
  // A flag has no value.
  const args = Object.entries(options)
    .flat()
    .filter((arg) => arg !== "");
  const server = spawn(binary, ["serve", `${AGENT}:root_agent`, ...args], {
    cwd: folder,
    env: {
      ...process.env,
      ...PATIENCE,
      SLUICEGATE_EFFECTS: effects,
      SLUICEGATE_HOLDS: holds,
      SLUICEGATE_APPROVAL_TTLS: `pay_soon=${SHORT_TTL}`,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const url = await readUrl(server, log);
  return { url, effects, holds, log, stop: () => stop(server) };
}

/** Start the server of the samples on a free port, with its files in `folder`. */
export async function startSamples(folder: string): Promise<Server> {
  const effects = join(folder, "samples.effects");
  const holds = join(folder, "samples-holds");
  const log = join(folder, "samples.log");
  await mkdir(holds);
  const server = spawn(
    process.env.SLUICEGATE_PYTHON ?? join(ROOT, ".venv/bin/python"),
    ["-m", "uvicorn", "--factory", "tests.agents.samples:app", "--port", "0"],
    {
      cwd: join(ROOT, "backend"),
      env: {
        ...process.env,
        ...PATIENCE,
        SLUICEGATE_EFFECTS: effects,
        SLUICEGATE_HOLDS: holds,
        SLUICEGATE_SAMPLES: folder,
      },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const url = await readUrl(server, log);
  return { url, effects, holds, log, stop: () => stop(server) };
}

/** The server of one sample in one style. */
export function sampleServer(samples: ServerInfo, style: Style, sample: Sample): ServerInfo {
  return { ...samples, url: `${samples.url}/${style}/${sample}` };
}

/** The first URL in the output of the server, which is written to the log. */
function readUrl(server: ChildProcess, log: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const file = createWriteStream(log);
    let output = "";
    const fail = (reason: string): void => {
      clearTimeout(timer);
      server.kill("SIGKILL");
      reject(new Error(`the server ${reason}; its output:\n${output}`));
    };
    const timer = setTimeout(() => fail("did not print its URL in time"), START_TIMEOUT);
    const read = (data: Buffer): void => {
      file.write(data);
      if (output.length > 100_000) return;
      output += data.toString();
      const url = /http:\/\/[\w.[\]:-]+:[1-9]\d*/.exec(output)?.[0];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    };
    server.stdout?.on("data", read);
    server.stderr?.on("data", read);
    server.on("error", (error) => fail(`did not start: ${error.message}`));
    server.on("exit", (code) => fail(`ended with ${code}`));
  });
}

function stop(server: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (server.exitCode !== null) {
      resolve();
      return;
    }
    const timer = setTimeout(() => server.kill("SIGKILL"), 30_000);
    server.on("exit", () => {
      clearTimeout(timer);
      resolve();
    });
    server.kill("SIGTERM");
  });
}

/** One execution of a tool, as the tool recorded it in a file. */
export interface Effect {
  readonly chat: string;
  readonly tool: string;
  readonly args: Record<string, unknown>;
}

/** The executions of tools in one chat, in order. */
export async function effectsOf(server: ServerInfo, chatId: string): Promise<Effect[]> {
  let text: string;
  try {
    text = await readFile(server.effects, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  // All chats share the file, and a line that crosses a page of it appears in two steps.
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Effect)
    .filter((effect) => effect.chat === chatId);
}
