import type { BrowserContext, Page } from "@playwright/test";

/** The functions with which React begins to work, as its own sources name them. */
const ENTRIES = new Set([
  "commitRoot",
  "flushPassiveEffects",
  "flushSyncWorkAcrossRoots_impl",
  "performSyncWorkOnRoot",
  "performWorkOnRoot",
  "performWorkOnRootViaSchedulerTask",
  "performWorkUntilDeadline",
  "processRootScheduleInMicrotask",
]);

interface CallNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string };
  readonly children?: readonly number[];
}

/** Which nodes of a profile stand below an entry of React. */
function belowReact(nodes: readonly CallNode[]): ReadonlySet<number> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Set<number>();
  const walk = (id: number, isReact: boolean): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const isBelow = isReact || ENTRIES.has(node.callFrame.functionName);
    if (isBelow) found.add(id);
    for (const child of node.children ?? []) walk(child, isBelow);
  };
  const [root] = nodes;
  if (root !== undefined) walk(root.id, false);
  return found;
}

/** The share of the time of some work, from 0 to 1, that the page spends in React. */
export async function reactShare(
  context: BrowserContext,
  page: Page,
  work: () => Promise<void>,
): Promise<number> {
  const session = await context.newCDPSession(page);
  await session.send("Profiler.enable");
  await session.send("Profiler.setSamplingInterval", { interval: 500 });
  await session.send("Profiler.start");
  await work();
  const { profile } = await session.send("Profiler.stop");
  await session.detach();
  const react = belowReact(profile.nodes);
  let inReact = 0;
  for (const [index, id] of (profile.samples ?? []).entries()) {
    if (react.has(id)) inReact += profile.timeDeltas?.[index] ?? 0;
  }
  return inReact / (profile.endTime - profile.startTime);
}
