import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";

/** How an approval looks on the wire; a setting of the server, so each style has its own. */
export type Style = "call" | "confirmation";

export const STYLES: readonly Style[] = ["call", "confirmation"];

/** Where a running server is, and where its tools note their effects. */
export interface Place {
  readonly url: string;
  readonly effects: string;
  /** A folder; a file in it with a chat's id keeps that chat's model from speaking. */
  readonly holds: string;
  readonly log: string;
}

export interface Server extends Place {
  stop(): Promise<void>;
}

const ROOT = resolve(import.meta.dirname, "../../..");
const AGENT = join(ROOT, "backend/tests/agents/conformance_agent.py");
const SCRIPT = join(ROOT, "backend/tests/agents/conformance.yaml");
const START_TIMEOUT = 60_000;

/** Seconds that a `pay_soon` waits for its answer. */
export const SHORT_TTL = 0.5;

/**
 * Start one server of the conformance agent on a port of its own, with its files in `folder`;
 * `more` are further options with their values.
 */
export async function startServer(
  style: Style,
  folder: string,
  more: Readonly<Record<string, string>> = {},
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
    ...more,
  };
  const server = spawn(
    binary,
    ["serve", `${AGENT}:root_agent`, ...Object.entries(options).flat()],
    {
      cwd: folder,
      env: {
        ...process.env,
        SLUICEGATE_EFFECTS: effects,
        SLUICEGATE_HOLDS: holds,
        SLUICEGATE_APPROVAL_TTLS: `pay_soon=${SHORT_TTL}`,
      },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const url = await readUrl(server, log);
  return { url, effects, holds, log, stop: () => stop(server) };
}

/** The first URL that the server prints; everything it says goes to the log. */
function readUrl(server: ChildProcess, log: string): Promise<string> {
  return new Promise((found, fail) => {
    const file = createWriteStream(log);
    let said = "";
    const giveUp = (why: string): void => {
      clearTimeout(timer);
      server.kill("SIGKILL");
      fail(new Error(`the server ${why}; it said:\n${said}`));
    };
    const timer = setTimeout(() => giveUp("did not name its URL in time"), START_TIMEOUT);
    const read = (data: Buffer): void => {
      file.write(data);
      if (said.length > 100_000) return;
      said += data.toString();
      const url = /http:\/\/[\w.[\]:-]+:[1-9]\d*/.exec(said)?.[0];
      if (url === undefined) return;
      clearTimeout(timer);
      found(url);
    };
    server.stdout?.on("data", read);
    server.stderr?.on("data", read);
    server.on("error", (fault) => giveUp(`did not start: ${fault.message}`));
    server.on("exit", (code) => giveUp(`ended with ${code}`));
  });
}

function stop(server: ChildProcess): Promise<void> {
  return new Promise((ended) => {
    if (server.exitCode !== null) {
      ended();
      return;
    }
    const timer = setTimeout(() => server.kill("SIGKILL"), 10_000);
    server.on("exit", () => {
      clearTimeout(timer);
      ended();
    });
    server.kill("SIGTERM");
  });
}
