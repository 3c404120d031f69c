import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { type ServerInfo, STYLES, type Style, startSamples, startServer } from "./servers.ts";

declare module "vitest" {
  interface ProvidedContext {
    servers: Record<Style, ServerInfo>;
    samples: ServerInfo;
  }
}

/**
 * Start one server per style and one of all samples, for all test files; their logs are kept if a test
 * fails.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "sluicegate-conformance-"));
  const started = await Promise.allSettled([
    startSamples(folder),
    ...STYLES.map((style) => startServer(style, folder, { "--text-from-results": "" })),
  ]);
  const servers = started.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  const failure = started.find((start) => start.status === "rejected");
  if (failure !== undefined) {
    await Promise.all(servers.map((server) => server.stop()));
    throw failure.reason;
  }
  const [samples, ...infos] = servers.map(({ stop: _, ...info }) => info) as [
    ServerInfo,
    ...ServerInfo[],
  ];
  project.provide("samples", samples);
  project.provide(
    "servers",
    Object.fromEntries(STYLES.map((style, index) => [style, infos[index]])) as Record<
      Style,
      ServerInfo
    >,
  );
  return async () => {
    await Promise.all(servers.map((server) => server.stop()));
    if (project.vitest.state.getCountOfFailedTests() > 0) {
      process.stderr.write(`The servers' logs and databases are in ${folder}\n`);
    } else {
      await rm(folder, { recursive: true });
    }
  };
}
