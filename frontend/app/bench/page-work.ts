import type { Page } from "@playwright/test";

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

interface Profile {
  readonly nodes: readonly CallNode[];
  readonly samples?: readonly number[];
  readonly timeDeltas?: readonly number[];
}

/** An event of a trace; `tdur` are microseconds of the processor. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
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

const NO_WORK = new Set(["(idle)", "(program)", "(root)"]);

/** Of the time that scripts take, the share, from 0 to 1, that is React's. */
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

/** What a page does with its main thread, in milliseconds of the processor. */
export interface PageWork {
  readonly longestTask: number;
  readonly scripts: number;
  readonly react: number;
}

/** The tasks of the thread that runs the page's scripts. */
function tasksOf(events: readonly TraceEvent[]): readonly TraceEvent[] {
  const call = events.find(({ name }) => name === "FunctionCall");
  const isTask = ({ name, pid, tid }: TraceEvent) =>
    name === "RunTask" && pid === call?.pid && tid === call.tid;
  return events.filter(isTask);
}

function cpu(events: readonly TraceEvent[]): number {
  return events.reduce((sum, { tdur }) => sum + (tdur ?? 0), 0) / 1000;
}

/**
 * Measure what a page does during some work.
 *
 * Time is the processor's, not the clock's: what else runs on the machine is not the page's fault.
 */
export async function measureWork(page: Page, work: () => Promise<void>): Promise<PageWork> {
  const context = page.context();
  const session = await context.newCDPSession(page);
  const tracing = await context.browser()?.newBrowserCDPSession();
  if (tracing === undefined) throw new Error("The browser cannot be looked into.");
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
  await work();
  const { profile } = await session.send("Profiler.stop");
  const complete = new Promise((done) => tracing.once("Tracing.tracingComplete", done));
  await tracing.send("Tracing.end");
  await complete;
  const tasks = tasksOf(events);
  const scripts = cpu(tasks);
  const longestTask = Math.max(0, ...tasks.map((task) => cpu([task])));
  return { longestTask, scripts, react: scripts * shareOfReact(profile) };
}
