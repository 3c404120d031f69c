import { screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { draw } from "../../testing/draw.tsx";
import { ChatSettings } from "./chat-settings.tsx";

const CHAT = { id: "c1", title: "Pay Ada", updatedAt: "2026-01-02T03:04:05Z", pendingApprovals: 0 };

/** A server with these grants; what was asked of it besides, in order. */
function server(grants: object[], answer = () => new Response(null, { status: 204 })) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (address: string, init: RequestInit = {}) => {
    if (init.method === undefined) return Response.json({ grants });
    asked.push([init.method, address, init.body].filter(Boolean).join(" "));
    return answer();
  });
  return asked;
}

function open() {
  const told = { onClose: vi.fn(), onRenamed: vi.fn(), onDeleted: vi.fn() };
  draw(<ChatSettings chat={CHAT} {...told} />);
  return { ...told, user: userEvent.setup() };
}

const button = (name: string) => screen.getByRole("button", { name });

afterEach(() => {
  vi.unstubAllGlobals();
});

test("a chat gets another title", async () => {
  const asked = server([]);
  const { user, onClose, onRenamed } = open();
  await user.clear(screen.getByRole("textbox", { name: "Title" }));
  await user.type(screen.getByRole("textbox", { name: "Title" }), " Rent {Enter}");
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(asked).toEqual(['PATCH /api/chats/c1 {"title":"Rent"}']);
  expect(onRenamed).toHaveBeenCalled();
});

test("a chat is deleted only after a second yes", async () => {
  const asked = server([]);
  const { user, onDeleted } = open();
  await user.click(button("Delete"));
  expect(asked).toEqual([]);
  await user.click(button("Keep it"));
  await user.click(button("Delete"));
  await user.click(button("Delete for good"));
  await waitFor(() => expect(onDeleted).toHaveBeenCalled());
  expect(asked).toEqual(["DELETE /api/chats/c1"]);
});

test("what the server refuses is said in its own words", async () => {
  server([], () => new Response("A turn runs in this chat; stop it first.", { status: 409 }));
  const { user, onDeleted } = open();
  await user.click(button("Delete"));
  await user.click(button("Delete for good"));
  expect(await screen.findByText("A turn runs in this chat; stop it first.")).toBeTruthy();
  expect(onDeleted).not.toHaveBeenCalled();
});

test("a tool that is always allowed can be made to ask again", async () => {
  const asked = server([{ tool: "process_payment" }]);
  const { user } = open();
  await user.click(await screen.findByRole("button", { name: "Ask again" }));
  await waitFor(() => expect(screen.queryByText("process_payment")).toBeNull());
  expect(asked).toEqual(["DELETE /api/chats/c1/grants/process_payment"]);
});
