import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { stripVTControlCharacters } from "node:util";

export interface Start {
  cwd: string;
  env: Record<string, string>;
}

/** A command that serves until it is closed; its output is kept. */
export class Service {
  output = "";

  private constructor(readonly process: ChildProcess) {}

  /** Resolves when the output matches; rejects with the output if the command ends before. */
  static async start(command: string[], ready: RegExp, { cwd, env }: Start): Promise<Service> {
    const [file = "", ...args] = command;
    const service = new Service(spawn(file, args, { cwd, env, stdio: "pipe", detached: true }));
    await new Promise<void>((resolve, reject) => {
      const read = (data: Buffer) => {
        service.output += stripVTControlCharacters(data.toString());
        if (ready.test(service.output)) resolve();
      };
      service.process.stdout?.on("data", read);
      service.process.stderr?.on("data", read);
      service.process.on("error", reject);
      service.process.on("exit", () => reject(new Error(`It ended:\n${service.output}`)));
    });
    return service;
  }

  /** End the command and the processes that it started. */
  async close(): Promise<void> {
    const { pid, exitCode, signalCode } = this.process;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    const exited = once(this.process, "exit");
    process.kill(-pid, "SIGTERM");
    await exited;
  }
}
