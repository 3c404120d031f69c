import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base, expect } from "@playwright/test";
import { DemoServer } from "../demo-server.ts";
import { NetworkProxy } from "../network-proxy.ts";
import { isPlayed } from "../parts.ts";
import { Monkey, type Step } from "./monkey.ts";
import { seededRandom } from "./random.ts";
import { modelScript } from "./tasks.ts";

const { MONKEY_MINUTES, MONKEY_SEED, MONKEY_ACTIONS } = process.env;
const minutes = Number(MONKEY_MINUTES || 1);
/** The scenarios play the same actions each time; `make monkey` searches with other seeds. */
const SCENARIO_SEED = 7;
/** Each is exceeded: a monkey that mostly does nothing finds nothing. */
const MINIMUMS = {
  actions: 30 * minutes,
  tasks: 8 * minutes,
  approved: minutes,
  decided: 2 * minutes,
};
const newSeed = () => (MONKEY_MINUTES ? Math.floor(Math.random() * 1e6) : SCENARIO_SEED);

// The trace of an hour would be larger than the memory. A wait without a limit would last that long.
base.use({ trace: "off", actionTimeout: 60_000, navigationTimeout: 60_000 });

const test = base.extend<{ seed: number; monkey: Monkey }>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright requires the pattern to find the dependencies of a fixture.
  seed: async ({}, use) => use(Number(MONKEY_SEED || newSeed())),
  monkey: async ({ seed }, use) => {
    const folder = await mkdtemp(join(tmpdir(), "sluicegate-monkey-"));
    const script = join(folder, "script.json");
    await writeFile(script, JSON.stringify(modelScript(seededRandom(seed))));
    // A monkey is faster than a person.
    const settings = {
      SLUICEGATE_MAX_TURNS_PER_MINUTE: "1000",
      SLUICEGATE_MAX_MESSAGES_PER_MINUTE: "1000",
      SLUICEGATE_MAX_REQUESTS_PER_MINUTE: "100000",
      SLUICEGATE_MAX_TURNS_PER_USER: "100",
    };
    const server = await DemoServer.startWith(settings, "--model-script", script);
    const network = await NetworkProxy.start(server.port);
    await use(new Monkey(server, network));
    await network.close();
    await server.close();
    await rm(folder, { recursive: true });
  },
});

async function recordedSteps(): Promise<Step[] | undefined> {
  if (!MONKEY_ACTIONS) return undefined;
  const lines = (await readFile(MONKEY_ACTIONS, "utf8")).trim().split("\n");
  return lines.map((line) => JSON.parse(line));
}

for (const transport of ["SSE", "WebSocket"]) {
  test(`a random person finds what is stored, and pays what was approved, over ${transport}`, async ({
    browser,
    seed,
    monkey,
  }, info) => {
    test.skip(!isPlayed(info.title), "played in the run of another day");
    test.setTimeout(600_000 + 2 * minutes * 60_000);
    process.stdout.write(`monkey over ${transport}: MINUTES=${minutes} SEED=${seed}\n`);
    const [context, other] = [
      await browser.newContext({ baseURL: monkey.network.url }),
      await browser.newContext(),
    ];
    const steps = await recordedSteps();
    try {
      await monkey.open(context, await other.newPage(), transport);
      if (steps === undefined) await monkey.run(seed, minutes * 60_000, MINIMUMS);
      else for (const step of steps) await monkey.step(step);
      await monkey.calm();
    } catch (error) {
      const path = join(tmpdir(), `monkey-${seed}-${transport}.jsonl`);
      await monkey.writeSteps(path);
      const names = monkey.steps.map(({ name }) => name).join(" ");
      process.stdout.write(
        `${monkey.log.join("\n")}\nseed ${seed}, ${transport}: ${names}\nPlay again: make monkey MINUTES=${minutes} SEED=${seed} ACTIONS=${path}\n`,
      );
      throw error;
    } finally {
      process.stdout.write(`${JSON.stringify(await monkey.summary())}\n`);
      await context.close();
      await other.close();
    }
    if (steps !== undefined) return;
    const summary = await monkey.summary();
    for (const [name, least] of Object.entries(MINIMUMS)) {
      expect(summary[name] ?? 0, name).toBeGreaterThan(least);
    }
  });
}
