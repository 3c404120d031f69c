import { screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { renderPage } from "../testing/render.tsx";
import { becomeDemoUser, signOut, type UserChange, watchUser } from "./session.ts";
import { SignedInUser } from "./signed-in-user.tsx";

/** Stub a server with a session; returns its requests that are no GET. */
function stubServer(session: object, respond = () => new Response(null, { status: 204 })) {
  const requests: string[] = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit = {}) => {
    if (init.method === undefined) return Response.json(session);
    requests.push(`${init.method} ${url}`);
    return respond();
  });
  return requests;
}

afterEach(() => {
  vi.unstubAllGlobals();
  localStorage.clear();
});

test("a user behind a proxy has a name but cannot sign out", async () => {
  stubServer({ user: "ada@acme.example", canSignOut: false });
  renderPage(<SignedInUser />);
  expect(await screen.findByText("ada@acme.example")).toBeTruthy();
  expect(screen.queryByRole("button")).toBeNull();
});

test("nothing is shown on a server without authentication", async () => {
  stubServer({ user: null, canSignOut: false });
  const loaded = vi.spyOn(Response, "json");
  const { content } = renderPage(<SignedInUser />);
  await waitFor(() => expect(loaded).toHaveBeenCalled());
  expect(content.textContent).toBe("");
});

test("a refused sign-out shows the sentence of the server", async () => {
  stubServer({ user: "ada", canSignOut: true }, () => new Response("Not now.", { status: 503 }));
  renderPage(<SignedInUser />);
  await userEvent.setup().click(await screen.findByRole("button", { name: "Sign out" }));
  expect((await screen.findByRole("alert")).textContent).toBe("Not now.");
});

/** Another page of this browser, with the changes that it receives. */
function otherPage() {
  const channel = new BroadcastChannel("sluicegate.user-changed");
  const received: UserChange[] = [];
  channel.addEventListener("message", ({ data }) => received.push(data));
  const send = (isSignOut: boolean) => channel.postMessage({ isSignOut, page: 2 });
  return { received, send, close: () => channel.close() };
}

test("signing out removes the drafts and reaches every other tab", async () => {
  const requests = stubServer({});
  const [other, again] = [otherPage(), vi.fn()];
  const stop = watchUser(again);
  localStorage.setItem("sluicegate.draft.c1", "{}");
  localStorage.setItem("sluicegate.colours", "dark");
  const thisTab = vi.fn();
  await signOut(thisTab);
  expect(requests).toEqual(["DELETE /api/session"]);
  expect(thisTab).toHaveBeenCalledOnce();
  await waitFor(() => expect(other.received).toHaveLength(1));
  expect(other.received[0]?.isSignOut).toBe(true);
  expect(Object.keys(localStorage)).toEqual(["sluicegate.colours"]);
  // The other tab may have stored a draft since; this one does not inform itself.
  expect(again).not.toHaveBeenCalled();
  localStorage.setItem("sluicegate.draft.c1", "{}");
  other.send(true);
  await waitFor(() => expect(again).toHaveBeenCalledOnce());
  expect(Object.keys(localStorage)).toEqual(["sluicegate.colours"]);
  other.close();
  stop();
});

test("the back button does not show a page from before signing out", () => {
  const onSignedOut = vi.fn();
  const stop = watchUser(onSignedOut);
  dispatchEvent(Object.assign(new Event("pageshow"), { persisted: false }));
  expect(onSignedOut).not.toHaveBeenCalled();
  dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
  expect(onSignedOut).toHaveBeenCalledOnce();
  stop();
});

test("the people of the demo are switched without a sign-in", async () => {
  const session = { user: "local", canSignOut: false, demoUsers: ["local", "colleague"] };
  stubServer(session);
  renderPage(<SignedInUser />);
  await screen.findByRole("button", { name: "Continue as colleague" });
  expect(screen.queryByRole("button", { name: "Continue as local" })).toBeNull();
  const [changed, again, other] = [vi.fn(), vi.fn(), otherPage()];
  const stop = watchUser(again);
  localStorage.setItem("sluicegate.draft.c1", "{}");
  becomeDemoUser("colleague", changed);
  expect(document.cookie).toContain("sluicegate-demo-user=colleague");
  expect(changed).toHaveBeenCalledOnce();
  await waitFor(() => expect(other.received).toHaveLength(1));
  expect(again).not.toHaveBeenCalled();
  other.send(false);
  await waitFor(() => expect(again).toHaveBeenCalledOnce());
  expect(Object.keys(localStorage)).toEqual(["sluicegate.draft.c1"]);
  other.close();
  stop();
});
