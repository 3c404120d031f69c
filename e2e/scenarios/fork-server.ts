import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const BACKEND = join(import.meta.dirname, "../../backend");

/** Where Python is, with the sluicegate that is tested. */
export const PROGRAMS =
  process.env.SLUICEGATE_PROGRAMS ?? join(import.meta.dirname, "../../.venv/bin");

/** Where processes of this worker come from, and whether it listens. */
let started: Promise<string> | undefined;

/** A running command of `sluicegate`. */
export interface ForkedProcess {
  readonly pid: number;
  /** What it writes, paused; it closes with the process. */
  readonly output: Socket;
}

/** Start a command as `backend/tests/fork_server.py` describes; it has imported everything. */
export async function fork(
  argv: readonly string[],
  folder: string,
  environment: NodeJS.ProcessEnv,
): Promise<ForkedProcess> {
  started ??= startForkServer();
  const output = connect(await started);
  output.write(`${JSON.stringify({ argv, folder, environment, log: null })}\n`);
  let line = "";
  while (!line.includes("\n")) {
    const [data] = (await once(output, "data")) as [Buffer];
    line += data.toString();
  }
  const [id = "", ...rest] = line.split("\n");
  output.pause();
  output.unshift(Buffer.from(rest.join("\n")));
  return { pid: Number(id), output };
}

/**
 * Send a signal and wait until the process is gone. Its output tells, since its id may soon be that
 * of another process or thread.
 */
export async function end({ pid, output }: ForkedProcess, signal: NodeJS.Signals): Promise<void> {
  if (output.closed) return;
  const closed = once(output, "close");
  process.kill(pid, signal);
  output.resume();
  await closed;
}

/** Start the process that forks; it ends with this one. */
async function startForkServer(): Promise<string> {
  const path = join(mkdtempSync(join(tmpdir(), "sluicegate-fork-")), "socket");
  const server = spawn(join(PROGRAMS, "python"), ["-m", "tests.fork_server", path], {
    cwd: BACKEND,
    stdio: ["pipe", "pipe", "inherit"],
  });
  // It closes its output when it listens.
  await once(server.stdout.resume(), "end");
  server.unref();
  (server.stdin as Socket).unref();
  return path;
}
