import { screen, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import type { UIMessage } from "ai";
import { afterEach, expect, test, vi } from "vitest";
import { renderPage } from "../../testing/render.tsx";
import { ChatContext, type ChatContextValue } from "../chat/chat-context.ts";
import { EarlierVersions } from "./earlier-versions.tsx";

const CONTEXT = {
  chatId: "c1",
  isBusy: false,
  requests: [],
  decisions: new Map(),
  toolProgress: new Map(),
  callNumbers: new Map(),
} as unknown as ChatContextValue;

afterEach(() => {
  vi.unstubAllGlobals();
});

function answer(id: string, version?: number, ...parts: object[]): UIMessage {
  const metadata = version === undefined ? {} : { version };
  return { id, role: "assistant", metadata, parts: parts as UIMessage["parts"] };
}

const text = (text: string) => ({ type: "text", text });

/** Serve earlier versions by the end of their URL; any other is unknown. */
function serve(versions: Readonly<Record<string, readonly UIMessage[]>>): string[] {
  const urls: string[] = [];
  vi.stubGlobal("fetch", async (url: string) => {
    urls.push(url.slice(url.indexOf("/chats/")));
    const messages = versions[url.slice(url.indexOf("/messages/") + "/messages/".length)];
    return messages === undefined
      ? new Response("There is no such version of this message.", { status: 404 })
      : Response.json({ version: 1, messages });
  });
  return urls;
}

function renderVersions(message: UIMessage) {
  renderPage(
    <ChatContext value={CONTEXT}>
      <EarlierVersions message={message} />
    </ChatContext>,
  );
  return userEvent.setup();
}

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });
const region = (name: string) => screen.findByRole("region", { name });

test("an answer that replaced nothing has no control", () => {
  renderVersions(answer("a1"));
  expect(screen.queryAllByRole("button")).toEqual([]);
});

test("earlier versions are read one by one, and the last one is the answer itself", async () => {
  const user: UIMessage = { id: "u1", role: "user", parts: [{ type: "text", text: "Hi" }] };
  const urls = serve({
    "a%2F3/versions/2": [user, answer("a2", 2, text("Second"))],
    "a%2F3/versions/1": [user, answer("a1", undefined, text("First"))],
  });
  const events = renderVersions(answer("a/3", 3));
  expect(screen.getByRole("status").textContent).toBe("Version 3 of 3");
  expect(button("Later version").disabled).toBe(true);
  await events.click(button("Earlier version"));
  const second = await region("Version 2 of 3, replaced");
  await within(second).findByText("Second");
  expect(within(second).getByText("Hi")).toBeDefined();
  await events.click(button("Earlier version"));
  await within(await region("Version 1 of 3, replaced")).findByText("First");
  expect(button("Earlier version").disabled).toBe(true);
  await events.click(button("Later version"));
  await events.click(button("Later version"));
  expect(screen.queryByRole("region")).toBeNull();
  expect(urls).toEqual([
    "/chats/c1/messages/a%2F3/versions/2",
    "/chats/c1/messages/a%2F3/versions/1",
  ]);
});

test("nothing in an earlier version can be answered", async () => {
  const call = { toolCallId: "c1", input: { message: "Which colour?" } };
  serve({
    "a2/versions/1": [
      answer(
        "a1",
        undefined,
        { ...call, type: "tool-adk_request_input", state: "input-available" },
        {
          ...call,
          toolCallId: "c2",
          type: "tool-pay",
          state: "approval-requested",
          approval: { id: "p1" },
        },
      ),
    ],
  });
  const events = renderVersions(answer("a2", 2));
  await events.click(button("Earlier version"));
  const replaced = await region("Version 1 of 2, replaced");
  await within(replaced).findByRole("region", { name: "Tool: pay" });
  expect(within(replaced).queryByRole("textbox")).toBeNull();
  const names = within(replaced)
    .getAllByRole("button")
    .map(({ textContent }) => textContent);
  expect(new Set(names)).toEqual(new Set(["Details"]));
});

test("an answer that had versions of its own has a control in the version that replaced it", async () => {
  serve({
    "a9/versions/1": [answer("a1", undefined, text("First")), answer("a3", 2, text("Third"))],
    "a3/versions/1": [answer("a2", undefined, text("Second"))],
  });
  const events = renderVersions(answer("a9", 2));
  await events.click(button("Earlier version"));
  const replaced = await region("Version 1 of 2, replaced");
  await events.click(await within(replaced).findByRole("button", { name: "Earlier version" }));
  await within(replaced).findByText("Second");
});

test("a version that is gone is reported in a sentence", async () => {
  serve({});
  const events = renderVersions(answer("a2", 2));
  await events.click(button("Earlier version"));
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toBe("There is no such version of this message.");
});
