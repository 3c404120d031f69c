import { screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { renderPage } from "../../testing/render.tsx";
import { loadInitialChat } from "./initial-load.ts";
import { useStoredMessages } from "./use-stored-messages.ts";

const MESSAGES = [{ id: "u1", role: "user", parts: [{ type: "text", text: "Hello!" }] }];

function StoredChat({ id }: { readonly id: string }) {
  const [load, retry] = useStoredMessages(id);
  const texts = load.state === "open" ? load.messages.map(({ id }) => id) : [];
  return (
    <button type="button" onClick={retry}>
      {[load.state, ...texts].join(" ")}
    </button>
  );
}

afterEach(() => {
  vi.unstubAllGlobals();
});

test("the chat that the page is opened with is rendered at once, and loaded anew later", async () => {
  const send = vi.fn(async () => Response.json({ messages: MESSAGES }));
  vi.stubGlobal("fetch", send);
  await loadInitialChat("c1");
  const { rerender } = renderPage(<StoredChat key={1} id="c1" />);
  expect(screen.getByText("open u1")).toBeTruthy();
  expect(send).toHaveBeenCalledTimes(1);
  rerender(<StoredChat key={2} id="c2" />);
  await screen.findByText("open u1");
  rerender(<StoredChat key={3} id="c1" />);
  await screen.findByText("open u1");
  expect(send.mock.calls).toHaveLength(3);
});

test("a chat that takes longer than the first rendering is requested once", async () => {
  let respond: (response: Response) => void = () => {};
  const response = new Promise<Response>((resolve) => {
    respond = resolve;
  });
  const send = vi.fn(() => response);
  vi.stubGlobal("fetch", send);
  await loadInitialChat("c1");
  renderPage(<StoredChat id="c1" />);
  expect(screen.getByText("loading")).toBeTruthy();
  respond(Response.json({ messages: MESSAGES }));
  expect(await screen.findByText("open u1")).toBeTruthy();
  expect(send).toHaveBeenCalledTimes(1);
});

test("a chat that could not be loaded for the first rendering can be loaded again", async () => {
  vi.stubGlobal("fetch", async () => {
    throw new TypeError("fetch failed");
  });
  await loadInitialChat("c1");
  renderPage(<StoredChat id="c1" />);
  const failed = await screen.findByText("failed");
  vi.stubGlobal("fetch", async () => Response.json({ messages: MESSAGES }));
  await userEvent.click(failed);
  expect(await screen.findByText("open u1")).toBeTruthy();
});
