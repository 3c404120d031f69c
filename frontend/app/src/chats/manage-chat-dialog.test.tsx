import { screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { renderPage } from "../../testing/render.tsx";
import type { ChatSummary } from "../api.ts";
import { ManageChatDialog } from "./manage-chat-dialog.tsx";

const CHAT: ChatSummary = {
  id: "c1",
  title: "Pay Ada",
  updatedAt: "2026-01-02T03:04:05Z",
  pendingApprovals: 0,
  status: "ready",
};

/** Stub a server with grants; returns its other requests in order. */
function stubServer(grants: object[], respond = () => new Response(null, { status: 204 })) {
  const requests: string[] = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit = {}) => {
    if ((init.method ?? "GET") === "GET") return Response.json({ grants });
    requests.push([init.method, url, init.body].filter(Boolean).join(" "));
    return respond();
  });
  return requests;
}

function renderSettings() {
  const callbacks = { onClose: vi.fn(), onRenamed: vi.fn(), onDeleted: vi.fn() };
  renderPage(<ManageChatDialog chat={CHAT} {...callbacks} />);
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

test("a refused deletion shows the sentence of the server beside its button", async () => {
  stubServer([], () => new Response("A turn runs in this chat; stop it first.", { status: 409 }));
  const { user, onDeleted } = renderSettings();
  await user.click(button("Delete"));
  await user.click(button("Delete for good"));
  expect((await screen.findByRole("alert")).textContent).toBe(
    "A turn runs in this chat; stop it first.",
  );
  const field = screen.getByRole("textbox", { name: "Title" });
  expect(field.getAttribute("aria-invalid")).not.toBe("true");
  expect(field.closest("form")?.textContent).not.toContain("A turn runs");
  expect(onDeleted).not.toHaveBeenCalled();
  await user.click(button("Keep it"));
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a refused title shows the sentence of the server under its field", async () => {
  stubServer([], () => new Response("The title must be one line.", { status: 400 }));
  const { user, onRenamed } = renderSettings();
  await user.click(button("Rename"));
  const form = screen.getByRole("textbox", { name: "Title" }).closest("form");
  await waitFor(() => expect(form?.textContent).toContain("The title must be one line."));
  expect(onRenamed).not.toHaveBeenCalled();
});

const GRANT = {
  id: "grant-1",
  tool: "process_payment",
  agent: "shop/billing",
  where: {},
  approvalId: "ap-1",
  grantedAt: "2026-01-02T03:04:05Z",
  expiresAt: new Date(Date.now() + 24 * 3_600_000 - 60_000).toISOString(),
};

test("the grants are listed with their agent, values, expiry and id", async () => {
  const scoped = { ...GRANT, id: "grant-2", agent: "shop", where: { recipient: "Ada", amount: 5 } };
  stubServer([GRANT, scoped]);
  renderSettings();
  const [first, second] = (await screen.findAllByRole("listitem")).map(
    ({ textContent }) => textContent,
  );
  expect(first).toContain("shop/billing can call process_payment with any arguments.");
  expect(first).toContain("24 hours left");
  expect(first).toContain("grant-1");
  expect(second).toContain("shop can call process_payment with these values:");
  expect(second).toContain("recipientAda");
  expect(second).toContain("amount5");
});

test("one of two grants of a tool is withdrawn by its id", async () => {
  const requests = stubServer([GRANT, { ...GRANT, id: "grant/2", agent: "shop/sales" }]);
  const { user } = renderSettings();
  await user.click(
    await screen.findByRole("button", { name: "Ask again: process_payment, shop/sales" }),
  );
  await waitFor(() => expect(screen.getAllByRole("listitem")).toHaveLength(1));
  expect(screen.getByRole("listitem").textContent).toContain("shop/billing");
  expect(requests).toEqual(["DELETE /api/chats/c1/grants/grant%2F2"]);
});
