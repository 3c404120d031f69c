import { screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { renderPage } from "../../testing/render.tsx";
import { ChatContext, type ChatContextValue } from "../chat/chat-context.ts";
import { InputRequest } from "./input-request.tsx";
import type { ToolPart } from "./tool-part.ts";

const INPUT_REQUEST: ToolPart = {
  type: "tool-adk_request_input",
  toolCallId: "c1",
  state: "input-available",
  input: { message: "Which colour?" },
};
const CREDENTIAL_REQUEST: ToolPart = {
  type: "tool-adk_request_credential",
  toolCallId: "c2",
  state: "input-available",
  input: { authUri: "https://provider.example/consent?state=s1" },
};

function renderRequest(part: ToolPart) {
  const addOutput = vi.fn();
  const context = { addOutput } as unknown as ChatContextValue;
  renderPage(
    <ChatContext value={context}>
      <InputRequest part={part} />
    </ChatContext>,
  );
  return { addOutput, user: userEvent.setup() };
}

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });

test("an input request is answered with text", async () => {
  const { addOutput, user } = renderRequest(INPUT_REQUEST);
  expect(screen.getByRole("region").textContent).toContain("Which colour?");
  expect(button("Answer").disabled).toBe(true);
  await user.type(screen.getByRole("textbox"), "blue");
  await user.click(button("Answer"));
  expect(addOutput.mock.calls).toEqual([[INPUT_REQUEST, { result: "blue" }]]);
});

test("an input request can be refused", async () => {
  const { addOutput, user } = renderRequest(INPUT_REQUEST);
  await user.click(button("Refuse"));
  expect(addOutput).toHaveBeenCalledWith(INPUT_REQUEST, expect.any(Error));
});

test("a credential request links to the provider without opener and referrer", () => {
  renderRequest(CREDENTIAL_REQUEST);
  const link = screen.getByRole<HTMLAnchorElement>("link");
  expect(link.href).toBe("https://provider.example/consent?state=s1");
  expect(link.rel).toBe("noopener noreferrer");
});

test("a URL that executes code is not a link", () => {
  renderRequest({ ...CREDENTIAL_REQUEST, input: { authUri: "javascript:alert(1)" } });
  expect(screen.queryByRole("link")).toBeNull();
});

test("only a redirect with the state of the request is its answer", async () => {
  const { addOutput } = renderRequest(CREDENTIAL_REQUEST);
  const channel = new BroadcastChannel("sluicegate-oauth");
  const url = (state: string) => `http://localhost/oauth/return?code=x&state=${state}`;
  channel.postMessage({ type: "sluicegate-oauth", url: url("other") });
  channel.postMessage({ type: "sluicegate-oauth", url: url("s1") });
  await waitFor(() => expect(addOutput).toHaveBeenCalled());
  expect(addOutput.mock.calls).toEqual([[CREDENTIAL_REQUEST, { authResponseUri: url("s1") }]]);
  channel.close();
});
