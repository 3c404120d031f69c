import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../..");
const COMMAND = process.env.SLUICEGATE_COMMAND ?? join(ROOT, ".venv/bin/sluicegate");

/** An agent without tools, whose text is not held back. */
export const WRITER = `from google.adk.agents import LlmAgent
root_agent = LlmAgent(name="writer")
`;

/** An agent that asks before it pays. */
export const PAYER = `from google.adk.agents import LlmAgent
from sluicegate.tools import gated


def pay(recipient: str, amount: float) -> str:
    "Send money."
    return "paid"


root_agent = LlmAgent(name="payer", tools=[gated(pay)])
`;

/** A running server. */
export interface Server {
  readonly url: string;
  readonly process: ChildProcess;
}

/** Start a server in a folder whose model gives the responses to each message. */
export async function serve(
  folder: string,
  agent: string,
  responses: readonly object[],
): Promise<Server> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "agent.py"), agent);
  const script = { scenarios: [{ match: ".", responses }] };
  await writeFile(join(folder, "script.json"), JSON.stringify(script));
  const options = ["--model-script", "script.json", "--port", "0"];
  const server = spawn(COMMAND, ["serve", "agent.py:root_agent", ...options], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const output of server.stdout) {
    const url = /http:\/\/\S+?(?=\/ )/.exec(String(output))?.[0];
    if (url) return { url, process: server };
  }
  throw new Error("The server did not start.");
}
