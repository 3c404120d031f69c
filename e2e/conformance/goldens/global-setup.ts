import { join } from "node:path";
import type { TestProject } from "vitest/node";
import {
  type Server,
  type ServerInfo,
  STYLES,
  type Style,
  startServer,
} from "../harness/servers.ts";

declare module "vitest" {
  interface ProvidedContext {
    servers: Record<Style, ServerInfo>;
    folder: string;
  }
}

/** Start one recording server per style, in the folder that `GOLDEN_DIR` names. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = process.env.GOLDEN_DIR;
  if (folder === undefined) throw new Error("GOLDEN_DIR is not set; use `make golden`");
  const record = { "--record": join(folder, "recordings") };
  const servers = await Promise.all(STYLES.map((style) => startServer(style, folder, record)));
  const infos = STYLES.map((style, index) => {
    const { stop: _, ...info } = servers[index] as Server;
    return [style, info];
  });
  project.provide("servers", Object.fromEntries(infos) as Record<Style, ServerInfo>);
  project.provide("folder", folder);
  return async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
}
