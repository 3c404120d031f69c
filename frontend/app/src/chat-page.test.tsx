import { render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createProvider } from "../testing/render.tsx";
import { ChatPage } from "./chat-page.tsx";

const CHAT = {
  id: "c1",
  title: null,
  updatedAt: "2026-01-02T03:04:05Z",
  pendingApprovals: 0,
  status: "ready",
};

/** Stub a server with one chat, which has a title of null and one message. */
function stubServer(
  message: object,
  answer?: (path: string, body: unknown) => Response | undefined,
) {
  vi.stubGlobal("fetch", async (url: string | URL, init?: RequestInit) => {
    const { pathname } = new URL(url, location.href);
    const answered = answer?.(pathname, init?.body);
    if (answered !== undefined) return answered;
    if (pathname.endsWith("/chats")) return Response.json({ chats: [CHAT], next: null });
    if (pathname.endsWith("/stream")) return new Response(null, { status: 204 });
    if (pathname.endsWith("/chats/c1")) {
      return Response.json({ ...CHAT, messages: [message], status: "ready" });
    }
    return new Response("There is no such file.", { status: 404 });
  });
}

beforeEach(() => {
  history.replaceState(null, "", "?chat=c1");
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test("a chat without a title and a message without text are shown", async () => {
  const file = { type: "file", mediaType: "text/plain", filename: "a.txt", url: "data:,a" };
  stubServer({ id: "u1", role: "user", parts: [file] });
  render(<ChatPage />, { wrapper: createProvider() });
  expect(await screen.findByRole("link", { name: /^Without a title/ })).toBeTruthy();
  expect(await screen.findByRole("link", { name: "a.txt" })).toBeTruthy();
});

test.each([
  ["the page becomes visible", () => document.dispatchEvent(new Event("visibilitychange"))],
  ["the browser is online again", () => window.dispatchEvent(new Event("online"))],
])("a chat that could not be loaded is loaded again when %s", async (_, happen) => {
  vi.stubGlobal("fetch", async () => {
    throw new TypeError("fetch failed");
  });
  render(<ChatPage />, { wrapper: createProvider() });
  expect(await screen.findByText("The chat could not be opened")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Try again" })).toBeTruthy();
  stubServer({ id: "u1", role: "user", parts: [{ type: "text", text: "Hello!" }] });
  happen();
  expect(await screen.findByText("Hello!")).toBeTruthy();
});

test("a chat that cannot be shown leaves the page usable", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  stubServer({ id: "u1", role: "user", parts: null });
  render(<ChatPage />, { wrapper: createProvider() });
  expect((await screen.findByRole("alert")).textContent).toContain("This chat cannot be shown.");
  expect(screen.getByRole("link", { name: /^Without a title/ })).toBeTruthy();
  expect(screen.getByRole("button", { name: "Reload" })).toBeTruthy();
  const alert = screen.getByRole("alert");
  const button = [...alert.querySelectorAll("button")].find(
    ({ textContent }) => textContent === "New chat",
  );
  await userEvent.setup().click(button as HTMLElement);
  expect(await screen.findByRole("textbox", { name: "Message" })).toBeTruthy();
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a file that no model reads is named before it is sent, and sent at the second press", async () => {
  const notice = 'The model cannot read the file "a.wav": this model does not read audio.';
  const posted: string[] = [];
  stubServer(
    { id: "u1", role: "user", parts: [{ type: "text", text: "Hello!" }] },
    (path, body) => {
      if (path.endsWith("/files")) {
        const url = "/api/chats/c1/files/a.wav";
        return Response.json({ url, mediaType: "audio/wav", name: "a.wav", notice });
      }
      if (!path.endsWith("/api/chat")) return undefined;
      posted.push(String(body));
      return new Response("data: [DONE]\n\n", {
        headers: { "content-type": "text/event-stream" },
      });
    },
  );
  const user = userEvent.setup({ pointerEventsCheck: 0 });
  const { container } = render(<ChatPage />, { wrapper: createProvider() });
  await user.type(await screen.findByRole("textbox", { name: "Message" }), "Listen");
  const input = container.querySelector<HTMLInputElement>("input[type=file]");
  await user.upload(input as HTMLElement, new File(["RIFF"], "a.wav", { type: "audio/wav" }));

  await user.click(screen.getByRole("textbox", { name: "Message" }));
  await user.keyboard("{Enter}");
  expect((await screen.findByRole("alert")).textContent).toContain(notice);
  expect(posted).toEqual([]);
  expect(screen.getByRole("list", { name: "Attached files" }).textContent).toContain("a.wav");

  await user.keyboard("{Enter}");
  await vi.waitFor(() => expect(posted.length).toBe(1));
  expect(posted[0]).toContain("/api/chats/c1/files/a.wav");
});
