import type { Page } from "@playwright/test";

/** The entry functions of React, as named in its sources. */
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

interface Profile {
  readonly nodes: readonly CallNode[];
  readonly samples?: readonly number[];
  readonly timeDeltas?: readonly number[];
}

/** A trace event; `tdur` is CPU time in microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
}

/** The ids of the profile nodes below an entry function of React. */
function belowReact(nodes: readonly CallNode[]): ReadonlySet<number> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const ids = new Set<number>();
  const walk = (id: number, isReact: boolean): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const isBelow = isReact || ENTRIES.has(node.callFrame.functionName);
    if (isBelow) ids.add(id);
    for (const child of node.children ?? []) walk(child, isBelow);
  };
  const [root] = nodes;
  if (root !== undefined) walk(root.id, false);
  return ids;
}

const NO_WORK = new Set(["(idle)", "(program)", "(root)"]);

/** The share of React in the time of all scripts, from 0 to 1. */
function shareOfReact({ nodes, samples = [], timeDeltas = [] }: Profile): number {
  const react = belowReact(nodes);
  const idle = new Set(
    nodes.filter((node) => NO_WORK.has(node.callFrame.functionName)).map(({ id }) => id),
  );
  let [inReact, inScripts] = [0, 0];
  for (const [index, id] of samples.entries()) {
    const time = timeDeltas[index] ?? 0;
    if (!idle.has(id)) inScripts += time;
    if (react.has(id)) inReact += time;
  }
  return inScripts === 0 ? 0 : inReact / inScripts;
}

/** The work of a page on its main thread, in milliseconds of CPU time. */
export interface PageWork {
  readonly longestTask: number;
  readonly scripts: number;
  readonly react: number;
}

/** The tasks of the main thread. */
function tasksOf(events: readonly TraceEvent[]): readonly TraceEvent[] {
  const call = events.find(({ name }) => name === "FunctionCall");
  const isTask = ({ name, pid, tid }: TraceEvent) =>
    name === "RunTask" && pid === call?.pid && tid === call.tid;
  return events.filter(isTask);
}

function cpu(events: readonly TraceEvent[]): number {
  return events.reduce((sum, { tdur }) => sum + (tdur ?? 0), 0) / 1000;
}

/** Measure a page during an action, in CPU time, which is independent of other processes. */
export async function measureWork(page: Page, action: () => Promise<void>): Promise<PageWork> {
  const context = page.context();
  const session = await context.newCDPSession(page);
  const tracing = await context.browser()?.newBrowserCDPSession();
  if (tracing === undefined) throw new Error("The browser does not support tracing.");
  const events: TraceEvent[] = [];
  tracing.on("Tracing.dataCollected", ({ value }) =>
    events.push(...(value as unknown as TraceEvent[])),
  );
  await session.send("Profiler.enable");
  await session.send("Profiler.setSamplingInterval", { interval: 500 });
  await session.send("Profiler.start");
  const includedCategories = [
    "toplevel",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
  ];
  await tracing.send("Tracing.start", { traceConfig: { includedCategories } });
  await action();
  const { profile } = await session.send("Profiler.stop");
  const complete = new Promise((resolve) => tracing.once("Tracing.tracingComplete", resolve));
  await tracing.send("Tracing.end");
  await complete;
  const tasks = tasksOf(events);
  const scripts = cpu(tasks);
  const longestTask = Math.max(0, ...tasks.map((task) => cpu([task])));
  return { longestTask, scripts, react: scripts * shareOfReact(profile) };
}
