import { expect, test } from "vitest";
import { Page } from "../../testing/hook.ts";
import type { ClientToolCall, ClientTools } from "../client-tool-executor.ts";
import {
  ANSWER,
  approvalRequest,
  call,
  gatedCall,
  output,
  step,
  text,
  turn,
  waitingTurn,
} from "../testing/chunks.ts";
import {
  ControlledStream,
  refusal,
  ScriptedServer,
  storedChat,
  streamOf,
} from "../testing/scripted-server.ts";

interface Execution {
  readonly input: unknown;
  readonly call: ClientToolCall;
}

/** A client-side tool `locate` that records its executions. */
function locateTool(run: (execution: Execution) => unknown = () => ({ city: "Ulm" })): {
  executions: Execution[];
  clientTools: ClientTools;
} {
  const executions: Execution[] = [];
  const locate = (input: unknown, call: ClientToolCall): unknown => {
    executions.push({ input, call: call });
    return run({ input, call: call });
  };
  return { executions, clientTools: { locate } };
}

const CALLED = streamOf(waitingTurn(step(call("c1", "locate", { input: { exact: true } }))));
const USER = { id: "u1", role: "user", parts: [{ type: "text", text: "Where?" }] };

function loaded(state: string, more: object = {}): object {
  const part = { type: "tool-locate", toolCallId: "c1", state, input: {}, ...more };
  return { id: "m1", role: "assistant", parts: [{ type: "step-start" }, part] };
}

test("a client-side call is executed once, and its output is sent", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(CALLED, streamOf(turn(ANSWER)));
  const { executions, clientTools } = locateTool();
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitFor(() => expect(page.text).toBe("Done."));

  expect(executions).toHaveLength(1);
  expect(executions[0]).toMatchObject({
    input: { exact: true },
    call: { toolCallId: "c1", toolName: "locate" },
  });
  expect(JSON.stringify(server.posts[1]?.body)).toContain('"output":{"city":"Ulm"}');
  expect(server.posts).toHaveLength(2);
});

test.each([
  { title: "an Error", thrown: new Error("No signal."), errorText: "No signal." },
  { title: "any other value", thrown: "no", errorText: "It failed." },
])(
  "$title thrown by a client-side tool becomes the error of its call",
  async ({ thrown, errorText }) => {
    const server = new ScriptedServer();
    server.postResponders.push(CALLED, streamOf(turn(ANSWER)));
    const { clientTools } = locateTool(() => Promise.reject(thrown));
    const page = new Page(server, { clientTools });
    await page.act((chat) => chat.sendMessage({ text: "Where?" }));
    await page.waitFor(() => expect(page.text).toBe("Done."));

    expect(page.parts.find((part) => part.toolCallId === "c1")).toMatchObject({
      state: "output-error",
      errorText,
    });
  },
);

test("a client-side tool that returns undefined has the output null", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(CALLED, streamOf(turn(ANSWER)));
  const { clientTools } = locateTool(() => undefined);
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitFor(() => expect(server.posts).toHaveLength(2));

  expect(JSON.stringify(server.posts[1]?.body)).toContain('"output":null');
});

test("a gated call is executed after the server has accepted its approval", async () => {
  const server = new ScriptedServer();
  const again = { type: "tool-input-available", toolCallId: "c1", toolName: "locate", input: {} };
  server.postResponders.push(
    streamOf(waitingTurn(step(gatedCall("c1", "locate")))),
    streamOf(waitingTurn(again)),
    streamOf(turn(ANSWER)),
  );
  const { executions, clientTools } = locateTool();
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitForStatus();
  expect(executions).toEqual([]);
  await page.act((chat) => chat.approve("approval-c1"));
  await page.waitFor(() => expect(page.text).toBe("Done."));

  expect(executions).toHaveLength(1);
  expect(server.posts).toHaveLength(3);
});

test("a gated call is not executed after a denial", async () => {
  const server = new ScriptedServer();
  const denial = { type: "tool-output-denied", toolCallId: "c1" };
  server.postResponders.push(
    streamOf(waitingTurn(step(gatedCall("c1", "locate")))),
    streamOf(turn(denial, ANSWER)),
  );
  const { executions, clientTools } = locateTool();
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitForStatus();
  await page.act((chat) => chat.deny("approval-c1"));
  await page.waitFor(() => expect(page.text).toBe("Done."));

  expect(executions).toEqual([]);
});

test("no call is executed before the end of the response", async () => {
  const server = new ScriptedServer();
  const stream = new ControlledStream();
  server.postResponders.push(stream.respond);
  const { executions, clientTools } = locateTool();
  const page = new Page(server, { clientTools });
  await page.act((chat) => void chat.sendMessage({ text: "Where?" }));
  stream.write(turn(step(call("c1", "locate"))).slice(0, 3));
  await page.waitFor(() => expect(page.states).toEqual(["input-available"]));
  await page.act((chat) => chat.disconnect());

  expect(page.chat.status).toBe("ready");
  expect(executions).toEqual([]);
});

test("a call beside an approval request is executed immediately and sent with the decision", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(
    streamOf(waitingTurn(step(call("c1", "locate"), call("c2"), approvalRequest("c2")))),
    streamOf(turn(output("c2"), ANSWER)),
  );
  const { executions, clientTools } = locateTool();
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitFor(() => expect(page.states).toEqual(["output-available", "approval-requested"]));
  expect([executions.length, server.posts.length]).toEqual([1, 1]);
  await page.act((chat) => chat.approve("approval-c2"));
  await page.waitFor(() => expect(page.text).toBe("Done."));

  expect(server.posts).toHaveLength(2);
});

/** A page with an output that waits for a decision, and the messages as the server stores them. */
async function pageWithWaitingOutput(server: ScriptedServer) {
  server.postResponders.push(
    streamOf(waitingTurn(step(call("c1", "locate"), call("c2"), approvalRequest("c2")))),
  );
  const { clientTools } = locateTool();
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitFor(() => expect(page.states).toEqual(["output-available", "approval-requested"]));
  const stored = (approval: object) =>
    page.chat.messages.map((message) => ({
      ...message,
      parts: message.parts.map((part) => {
        if (!("state" in part)) return part;
        if (part.state === "output-available") {
          return { ...part, state: "input-available" as const, output: undefined };
        }
        return part.state === "approval-requested" ? { ...part, ...approval } : part;
      }),
    })) as object[];
  return { page, stored };
}

test.each(["synchronize", "reload"] as const)(
  "%s keeps an output that waits for a decision",
  async (method) => {
    const server = new ScriptedServer();
    const { page, stored } = await pageWithWaitingOutput(server);
    server.onLoad = storedChat("waiting", stored({}));
    await page.act((chat) => chat[method]());

    expect(page.states).toEqual(["output-available", "approval-requested"]);
    expect(server.posts).toHaveLength(1);
  },
);

const DECIDED = {
  state: "approval-responded",
  approval: { id: "approval-c2", approved: true },
};

test.each(["synchronize", "reload"] as const)(
  "%s sends an output whose last decision was made elsewhere",
  async (method) => {
    const server = new ScriptedServer();
    const { page, stored } = await pageWithWaitingOutput(server);
    server.postResponders.push(streamOf(turn(output("c2"), ANSWER)));
    server.onLoad = storedChat("waiting", stored(DECIDED));
    await page.act((chat) => chat[method]());
    await page.waitFor(() => expect(page.text).toBe("Done."));

    expect(server.posts).toHaveLength(2);
    expect(JSON.stringify(server.posts[1]?.body)).toContain('"output":{"city":"Ulm"}');
  },
);

test("an output that the server refuses is not sent again by the reload", async () => {
  const server = new ScriptedServer();
  const { page, stored } = await pageWithWaitingOutput(server);
  server.postResponders.push(refusal(409, "already_decided", "Decided elsewhere."));
  server.onLoad = storedChat("waiting", stored(DECIDED));
  await page.act((chat) => chat.synchronize());
  await page.waitFor(() => expect(page.chat.refusal?.error.status).toBe(409));
  await page.act((chat) => chat.synchronize());

  expect(server.posts).toHaveLength(2);
});

test("stop aborts a client-side tool and discards its output", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(CALLED);
  const sealed = loaded("output-error", { errorText: "Stopped." });
  server.onLoad = storedChat("ready", [USER, sealed]);
  let finish: (found: unknown) => void = () => {};
  const { executions, clientTools } = locateTool(
    () => new Promise((resolve) => (finish = resolve)),
  );
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitFor(() => expect(executions).toHaveLength(1));
  await page.act((chat) => chat.stop());
  await page.act(() => finish({ city: "Ulm" }));

  expect(executions[0]?.call.signal.aborted).toBe(true);
  expect(page.chat.messages).toEqual([USER, sealed]);
  expect(server.posts).toHaveLength(1);
});

test.each([
  { title: "an open call", state: "input-available", more: {} },
  {
    title: "an approved call",
    state: "approval-responded",
    more: { approval: { id: "a1", approved: true } },
  },
])("$title of a loaded chat is executed if no turn is running", async (row) => {
  const server = new ScriptedServer();
  server.postResponders.push(streamOf(turn(ANSWER)));
  const { executions, clientTools } = locateTool();
  const messages = [USER, loaded(row.state, row.more)];
  const page = new Page(server, { clientTools, messages: messages as never });
  await page.waitFor(() => expect(page.text).toBe("Done."));

  expect([executions.length, server.posts.length]).toEqual([1, 1]);
});

test("no call is executed after unmount", async () => {
  const server = new ScriptedServer();
  let answer: (response: Response) => void = () => {};
  server.onResume = () => new Promise((resolve) => (answer = resolve));
  const { executions, clientTools } = locateTool();
  const messages = [USER, loaded("input-available")];
  const page = new Page(server, { clientTools, messages: messages as never });
  await page.waitFor(() => expect(server.log).toHaveLength(2));
  page.rendered.unmount();
  await page.act(() => answer(new Response(null, { status: 204 })));

  expect(executions).toEqual([]);
});

test("an approved call is not executed before its decision is sent", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(
    streamOf(waitingTurn(step(gatedCall("c1", "locate"), gatedCall("c2")))),
  );
  const { executions, clientTools } = locateTool();
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitForStatus();
  await page.act((chat) => chat.approve("approval-c1"));
  await page.act((chat) => chat.resumeStream());

  expect(page.states).toEqual(["approval-responded", "approval-requested"]);
  expect(executions).toEqual([]);
});

test("a refused output is not produced and sent again", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(CALLED, refusal(409, "superseded", "It is over."));
  server.onLoad = storedChat("waiting", [USER, loaded("input-available")]);
  const { executions, clientTools } = locateTool();
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitFor(() => expect(page.chat.refusal).toBeDefined());
  await page.waitFor(() => expect(page.states).toEqual(["input-available"]));

  expect([executions.length, server.posts.length]).toEqual([1, 2]);
});

test("a tool that is not in clientTools is not executed", async () => {
  const server = new ScriptedServer();
  server.postResponders.push(streamOf(waitingTurn(step(call("c1", "toString"), text("So.")))));
  const { clientTools } = locateTool();
  const page = new Page(server, { clientTools });
  await page.act((chat) => chat.sendMessage({ text: "Where?" }));
  await page.waitForStatus();

  expect(page.states).toEqual(["input-available"]);
});
