import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const COMMAND =
  process.env.SLUICEGATE_COMMAND ?? join(import.meta.dirname, "../../.venv/bin/sluicegate");

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** A server of the demo with a database and a record of effects of its own; it may die and come back. */
export class DemoServer {
  #process: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    readonly folder: string,
    readonly options: readonly string[],
  ) {}

  static async start(...options: string[]): Promise<DemoServer> {
    const folder = await mkdtemp(join(tmpdir(), "sluicegate-scenario-"));
    const server = new DemoServer(await freePort(), folder, options);
    await server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts it, again after a death; it answers when this is done. */
  async start(): Promise<void> {
    const effects = join(this.folder, "effects");
    const child = spawn(COMMAND, ["demo", "--port", String(this.port), ...this.options], {
      cwd: this.folder,
      // Nothing but Python is in its reach, as on a machine without Node.
      env: { ...process.env, PATH: dirname(COMMAND), SLUICEGATE_EFFECTS: effects },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    let said = "";
    const ready = new Promise<void>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on("data", (data: Buffer) => {
          said += data.toString();
          if (said.includes(this.url)) resolve();
        });
      }
      child.on("exit", () => reject(new Error(`The demo server ended:\n${said}`)));
    });
    await ready;
  }

  /** Ends the process at once, as a crash does. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async close(): Promise<void> {
    await this.#end("SIGTERM");
    await rm(this.folder, { recursive: true });
  }

  /** What the tools really did: one line for each effect. */
  async effects(): Promise<string[]> {
    const text = await readFile(join(this.folder, "effects"), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }
}
