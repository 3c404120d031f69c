import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { end, type ForkedProcess, fork, PROGRAMS } from "./fork-server.ts";

/** The claims of a process that has died: what it leaves in the database. */
const CLAIM = `
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1])
now = time.time()
with database:
    database.execute(
        "UPDATE sluicegate_approvals SET state = 'executing', answer = 1, decided_by = 'local', "
        "decided_at = ?, claimed_at = ?, owner = 'gone:turn' WHERE state = 'requested'",
        (now, now),
    )
`;

/** A busy machine stands still for longer than a lease lasts, and a turn without its lease ends. */
const PATIENCE = { SLUICEGATE_LEASE_TTL: "120" };

/** A port of 127.0.0.1 that no process uses. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** A demo server with its own database and effects file; it can be killed and restarted. */
export class DemoServer {
  #process: ForkedProcess | undefined;

  private constructor(
    readonly port: number,
    readonly folder: string,
    readonly options: readonly string[],
    readonly settings: Readonly<Record<string, string>>,
    /** The command that serves, with the agent. */
    readonly command: readonly string[] = ["demo"],
  ) {}

  static async start(...options: string[]): Promise<DemoServer> {
    return DemoServer.startWith({}, ...options);
  }

  /** Start a server with settings, by their environment variables. */
  static async startWith(
    settings: Readonly<Record<string, string>>,
    ...options: string[]
  ): Promise<DemoServer> {
    const folder = await mkdtemp(join(tmpdir(), "sluicegate-scenario-"));
    const server = new DemoServer(await freePort(), folder, options, settings);
    await server.start();
    return server;
  }

  /** Serve another agent than that of the demo. */
  static async serve(target: string, ...options: string[]): Promise<DemoServer> {
    const folder = await mkdtemp(join(tmpdir(), "sluicegate-scenario-"));
    const command = ["serve", target];
    const server = new DemoServer(await freePort(), folder, options, {}, command);
    await server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Start the process; resolves when the server accepts requests. */
  async start(): Promise<void> {
    const argv = [...this.command, "--port", String(this.port), ...this.options];
    // PATH contains Python only, as on a machine without Node.
    const server = await fork(argv, this.folder, {
      ...process.env,
      ...PATIENCE,
      ...this.settings,
      PATH: PROGRAMS,
      SLUICEGATE_EFFECTS: join(this.folder, "effects"),
    });
    this.#process = server;
    let output = "";
    await new Promise<void>((resolve, reject) => {
      server.output.on("data", (data: Buffer) => {
        output += data.toString();
        if (output.includes(this.url)) resolve();
      });
      server.output.on("close", () => reject(new Error(`The demo server ended:\n${output}`)));
      server.output.resume();
    });
  }

  /** Kill the process, like a crash. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Kill the process, and leave what it would if the calls that wait had just been claimed. */
  async dieDuringCalls(): Promise<void> {
    await this.kill();
    const database = join(this.folder, ".sluicegate", "sluicegate.db");
    await promisify(execFile)(join(PROGRAMS, "python"), ["-c", CLAIM, database]);
  }

  async close(): Promise<void> {
    await this.#end("SIGTERM");
    await rm(this.folder, { recursive: true });
  }

  /** The executions of tools, one line each. */
  async effects(): Promise<string[]> {
    const text = await readFile(join(this.folder, "effects"), "utf8").catch(() => "");
    // A line that a tool is writing may appear in two steps.
    return text.split("\n").slice(0, -1);
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#process;
    this.#process = undefined;
    if (server !== undefined) await end(server, signal);
  }
}
