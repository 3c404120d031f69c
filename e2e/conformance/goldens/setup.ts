import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { type Place, type Server, STYLES, type Style, startServer } from "../harness/servers.ts";

declare module "vitest" {
  interface ProvidedContext {
    places: Record<Style, Place>;
    folder: string;
  }
}

/** Start one recording server per style, in the folder that `GOLDEN_DIR` names. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = process.env.GOLDEN_DIR;
  if (folder === undefined) throw new Error("GOLDEN_DIR names no folder; use `make golden`");
  const record = { "--record": join(folder, "recordings") };
  const servers = await Promise.all(STYLES.map((style) => startServer(style, folder, record)));
  const places = STYLES.map((style, index) => {
    const { stop: _, ...place } = servers[index] as Server;
    return [style, place];
  });
  project.provide("places", Object.fromEntries(places) as Record<Style, Place>);
  project.provide("folder", folder);
  return async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
}
