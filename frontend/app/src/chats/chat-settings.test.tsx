import { screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { renderPage } from "../../testing/render.tsx";
import { ChatSettings } from "./chat-settings.tsx";

const CHAT = { id: "c1", title: "Pay Ada", updatedAt: "2026-01-02T03:04:05Z", pendingApprovals: 0 };

/** Stub a server with grants; returns its other requests in order. */
function stubServer(grants: object[], respond = () => new Response(null, { status: 204 })) {
  const requests: string[] = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit = {}) => {
    if (init.method === undefined) return Response.json({ grants });
    requests.push([init.method, url, init.body].filter(Boolean).join(" "));
    return respond();
  });
  return requests;
}

function renderSettings() {
  const callbacks = { onClose: vi.fn(), onRenamed: vi.fn(), onDeleted: vi.fn() };
  renderPage(<ChatSettings chat={CHAT} {...callbacks} />);
  return { ...callbacks, user: userEvent.setup() };
}

const button = (name: string) => screen.getByRole("button", { name });

afterEach(() => {
  vi.unstubAllGlobals();
});

test("a chat is renamed", async () => {
  const requests = stubServer([]);
  const { user, onClose, onRenamed } = renderSettings();
  await user.clear(screen.getByRole("textbox", { name: "Title" }));
  await user.type(screen.getByRole("textbox", { name: "Title" }), " Rent {Enter}");
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(requests).toEqual(['PATCH /api/chats/c1 {"title":"Rent"}']);
  expect(onRenamed).toHaveBeenCalled();
});

test("a chat is deleted only after a confirmation", async () => {
  const requests = stubServer([]);
  const { user, onDeleted } = renderSettings();
  await user.click(button("Delete"));
  expect(requests).toEqual([]);
  await user.click(button("Keep it"));
  await user.click(button("Delete"));
  await user.click(button("Delete for good"));
  await waitFor(() => expect(onDeleted).toHaveBeenCalled());
  expect(requests).toEqual(["DELETE /api/chats/c1"]);
});

test("a refusal shows the sentence of the server", async () => {
  stubServer([], () => new Response("A turn runs in this chat; stop it first.", { status: 409 }));
  const { user, onDeleted } = renderSettings();
  await user.click(button("Delete"));
  await user.click(button("Delete for good"));
  expect(await screen.findByText("A turn runs in this chat; stop it first.")).toBeTruthy();
  expect(onDeleted).not.toHaveBeenCalled();
});

test("a grant can be withdrawn", async () => {
  const requests = stubServer([{ id: "grant-1", tool: "process_payment" }]);
  const { user } = renderSettings();
  await user.click(await screen.findByRole("button", { name: "Ask again" }));
  await waitFor(() => expect(screen.queryByText("process_payment")).toBeNull());
  expect(requests).toEqual(["DELETE /api/chats/c1/grants/grant-1"]);
});
