import { screen, waitFor } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { draw } from "../../testing/draw.tsx";
import { type Around, AroundContext } from "../chat/context.ts";
import { PageQuestion } from "./page-question.tsx";
import type { ToolPart } from "./tool-states.ts";

const INPUT: ToolPart = {
  type: "tool-adk_request_input",
  toolCallId: "c1",
  state: "input-available",
  input: { message: "Which colour?" },
};
const CONSENT: ToolPart = {
  type: "tool-adk_request_credential",
  toolCallId: "c2",
  state: "input-available",
  input: { authUri: "https://provider.example/consent?state=s1" },
};

function open(part: ToolPart) {
  const answer = vi.fn();
  const around = { answer } as unknown as Around;
  draw(
    <AroundContext value={around}>
      <PageQuestion part={part} />
    </AroundContext>,
  );
  return { answer, user: userEvent.setup() };
}

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });

test("a question of a workflow is answered in words", async () => {
  const { answer, user } = open(INPUT);
  expect(screen.getByRole("region").textContent).toContain("Which colour?");
  expect(button("Answer").disabled).toBe(true);
  await user.type(screen.getByRole("textbox"), "blue");
  await user.click(button("Answer"));
  expect(answer.mock.calls).toEqual([[INPUT, { result: "blue" }]]);
});

test("nobody has to answer", async () => {
  const { answer, user } = open(INPUT);
  await user.click(button("Refuse"));
  expect(answer).toHaveBeenCalledWith(INPUT, expect.any(Error));
});

test("a consent is given at the provider, in a window that knows nothing of this page", () => {
  open(CONSENT);
  const link = screen.getByRole<HTMLAnchorElement>("link");
  expect(link.href).toBe("https://provider.example/consent?state=s1");
  expect(link.rel).toBe("noopener noreferrer");
});

test("an address that would run something is not offered as a link", () => {
  open({ ...CONSENT, input: { authUri: "javascript:alert(1)" } });
  expect(screen.queryByRole("link")).toBeNull();
});

test("whoever comes back with this consent has answered, whoever brings another has not", async () => {
  const { answer } = open(CONSENT);
  const channel = new BroadcastChannel("sluicegate-oauth");
  const url = (state: string) => `http://localhost/oauth/return?code=x&state=${state}`;
  channel.postMessage({ type: "sluicegate-oauth", url: url("other") });
  channel.postMessage({ type: "sluicegate-oauth", url: url("s1") });
  await waitFor(() => expect(answer).toHaveBeenCalled());
  expect(answer.mock.calls).toEqual([[CONSENT, { authResponseUri: url("s1") }]]);
  channel.close();
});
