import { type Random, shuffled } from "./random.ts";

/** The number of tasks in a script; a monkey asks for each once. */
const COUNT = 4000;

interface Response {
  readonly parts: readonly object[];
  readonly [key: string]: unknown;
}

const say = (text: string): Response => ({ parts: [{ text }], delay_ms: 10 });
const call = (name: string, args: object) => ({ call: { name, args } });
const payment = (recipient: string, amount: number) =>
  call("process_payment", { recipient, amount, currency: "EUR" });
const change = (task: number) => call("update_database", { change: `change ${task}`, rows: task });
const paragraphs = (task: number) =>
  Array.from({ length: 12 }, (_, line) => `Line ${line} of task ${task}, with **words**.`);

/** The kinds of tasks: each makes the responses of the model. No two tasks pay the same. */
const KINDS: readonly ((task: number) => Response[])[] = [
  (task) => [{ parts: [payment(`Payee ${task}`, task)] }, say(`Payment ${task} is settled.`)],
  (task) => [
    { parts: [{ text: "First the money. " }, payment(`Payee ${task}`, task)], delay_ms: 10 },
    say(`That was task ${task}.`),
  ],
  (task) => [
    { parts: [payment(`Ada ${task}`, task), payment(`Bob ${task}`, task)] },
    say(`Both payments of task ${task} are settled.`),
  ],
  (task) => [
    { parts: [call("search_database", { query: `task ${task}` }), change(task)] },
    say(`Both steps of task ${task} are settled.`),
  ],
  (task) => [
    { parts: [{ text: "One. " }, payment(`First ${task}`, task)], delay_ms: 10 },
    { parts: [{ text: "Two. " }, payment(`Second ${task}`, task)], delay_ms: 10 },
    { parts: [change(task)] },
    say(`That was the sequence ${task}.`),
  ],
  // A grant for the same values covers the second call.
  (task) => [
    { parts: [payment(`Twice ${task}`, task)] },
    { parts: [payment(`Twice ${task}`, task)] },
    say(`Task ${task} is done twice.`),
  ],
  (task) => [
    { parts: [call("get_weather", { city: "Bern" }), payment(`Guide ${task}`, task)] },
    say(`The weather and the guide of task ${task}.`),
  ],
  (task) => [
    {
      parts: [
        { text: "Where are you? " },
        call("get_location", { precise: false }),
        payment(`Taxi ${task}`, task),
      ],
      delay_ms: 10,
    },
    say(`The taxi of task ${task}.`),
  ],
  (task) => [
    { parts: [call("slow_report", { topic: `task ${task}` }), payment(`Press ${task}`, task)] },
    say(`The report of task ${task}.`),
  ],
  (task) => [{ ...say(paragraphs(task).join("\n\n")), delta_chars: 9, delay_ms: 40 }],
  (task) => [
    { parts: [{ thought: `How do I do ${task}?` }, { text: `Like **${task}**.` }], delay_ms: 20 },
  ],
  (task) => [
    {
      parts: [{ text: `Task ${task} breaks ` }],
      delay_ms: 10,
      error: { code: 503, message: "The model is overloaded." },
    },
  ],
];

/** The text of a message that asks for a task. */
export const taskText = (task: number) => `Do task ${task} now`;

/** A model script with tasks of every kind in a random order. */
export function modelScript(random: Random): object {
  const scenarios: object[] = [];
  while (scenarios.length < COUNT) {
    for (const responses of shuffled(KINDS, random)) {
      const task = scenarios.length + 1;
      scenarios.push({ match: `\\btask ${task}\\b`, responses: responses(task) });
    }
  }
  return { scenarios: [...scenarios, { match: "", responses: [say("There is no such task.")] }] };
}
