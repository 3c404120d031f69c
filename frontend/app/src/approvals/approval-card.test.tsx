import { screen, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { renderPage } from "../../testing/render.tsx";
import { payment } from "../../testing/requests.ts";
import { ApprovalGroup } from "./approval-group.tsx";
import type { ApprovalRequest } from "./approval-requests.ts";

function renderGroup(...requests: ApprovalRequest[]) {
  const decide = vi.fn();
  const rendered = renderPage(<ApprovalGroup requests={requests} onDecide={decide} />);
  const rerender = (...next: ApprovalRequest[]) =>
    rendered.rerender(<ApprovalGroup requests={next} onDecide={decide} />);
  return { decide, rerender, user: userEvent.setup() };
}

const card = (name = "Send money") => screen.getByRole("region", { name: `Approval: ${name}` });
const button = (name: string) => screen.getByRole("button", { name });

test("a card shows the tool, its arguments, the reason and the agent", () => {
  renderGroup(payment({ descriptor: { agent: "bookkeeper" }, reason: "Over the limit" }));
  expect(card().textContent).toContain("bookkeeper wants to call process_payment");
  expect(card().textContent).toContain("Over the limit");
  const rows = screen.getAllByRole("row").map((row) => row.textContent);
  expect(rows).toEqual(["recipientAda", "amount50"]);
});

test("the card itself has the focus, where no key decides", async () => {
  const { decide, user } = renderGroup(payment());
  expect(document.activeElement).toBe(card());
  await user.keyboard("{Enter}{Escape} {Enter}y");
  expect(decide).not.toHaveBeenCalled();
});

test("a new card does not take the focus from a text field with content", () => {
  const box = document.body.appendChild(document.createElement("textarea"));
  box.value = "half a senten";
  box.focus();
  renderGroup(payment());
  expect(document.activeElement).toBe(box);
  box.remove();
});

test.each(["{Enter}", "{Escape}"])("%s in the reason decides nothing", async (key) => {
  const { decide, user } = renderGroup(payment());
  await user.type(screen.getByRole("textbox"), `too much${key}`);
  expect(decide).not.toHaveBeenCalled();
});

test("a repeated key does not press a button", () => {
  const { decide } = renderGroup(payment());
  button("Approve").focus();
  const repeated = new KeyboardEvent("keydown", {
    key: "Enter",
    repeat: true,
    bubbles: true,
    cancelable: true,
  });
  button("Approve").dispatchEvent(repeated);
  expect(repeated.defaultPrevented).toBe(true);
  expect(decide).not.toHaveBeenCalled();
});

test.each([
  ["Approve", { approved: true }],
  ["Always in this chat", { approved: true, remember: "chat" }],
  ["Deny", { approved: false }],
])("%s can be pressed with the keyboard", async (name, decision) => {
  const { decide, user } = renderGroup(payment());
  button(name).focus();
  await user.keyboard("{Enter}");
  expect(decide.mock.calls).toEqual([["ap-1", decision]]);
});

test("a denial includes its reason", async () => {
  const { decide, user } = renderGroup(payment());
  await user.type(screen.getByRole("textbox"), "  too much ");
  await user.click(button("Deny"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: false, reason: "too much" }]]);
});

test.each([
  ["Edit", { editable: false, rememberable: true }],
  ["Always in this chat", { editable: true, rememberable: false }],
])("%s is shown only if the descriptor permits it", (name, descriptor) => {
  renderGroup(payment({ descriptor }));
  expect(screen.queryByRole("button", { name })).toBeNull();
  expect(button("Approve")).toBeTruthy();
});

test("arguments are edited in a form for the schema of the tool", async () => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Edit"));
  const amount = screen.getByRole("textbox", { name: "amount" });
  await user.clear(amount);
  await user.type(amount, "12,5");
  await user.selectOptions(screen.getByRole("combobox", { name: "currency" }), "CHF");
  await user.click(button("Approve with changes"));
  const edit = { recipient: "Ada", amount: 12.5, currency: "CHF" };
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, edit }]]);
});

test("an invalid value is not sent and shows an error", async () => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Edit"));
  await user.type(screen.getByRole("textbox", { name: "amount" }), " euros");
  await user.click(button("Approve with changes"));
  expect(decide).not.toHaveBeenCalled();
  expect(card().textContent).toContain("Type a number.");
});

test.each(["{Enter}", "{Escape}"])("%s in the form approves nothing", async (key) => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Edit"));
  await user.type(screen.getByRole("textbox", { name: "amount" }), `5${key}`);
  expect(decide).not.toHaveBeenCalled();
});

test("the form names invisible characters", async () => {
  const { user } = renderGroup(payment({ input: { recipient: "A\u202eda", amount: 5 } }));
  await user.click(button("Edit"));
  expect(card().textContent).toContain("Contains invisible characters: U+202E");
});

test("the form takes the focus and returns it to the card", async () => {
  const { user } = renderGroup(payment());
  await user.click(button("Edit"));
  expect(document.activeElement).toBe(screen.getByRole("textbox", { name: "recipient" }));
  await user.keyboard("{Escape}");
  expect(document.activeElement).toBe(card());
});

test("text of a tool is rendered without markup and with the names of invisible characters", () => {
  const hostileText = "<img src=x onerror=alert(1)>\u202egnp.exe\u200b\u200b";
  renderGroup(
    payment({
      title: hostileText,
      toolName: "p\u2066ay",
      input: { [`na${"\u200d"}me`]: hostileText },
    }),
  );
  expect(document.querySelector("img, script")).toBeNull();
  const content = screen.getByRole("region").textContent;
  expect(content).toContain("<img src=x onerror=alert(1)>U+202Egnp.exeU+200B ×2");
  expect(content).toContain("pU+2066ay");
  expect(content).toContain("naU+200Dme");
  expect(content).not.toMatch(/[\u202e\u2066\u200b\u200d]/);
  expect(screen.getByRole("region").getAttribute("aria-label")).toContain("⟨U+202E⟩");
});

test("a long argument is truncated until it is expanded", async () => {
  const { user } = renderGroup(payment({ input: { text: "x".repeat(200_000) } }));
  expect(card().textContent?.length).toBeLessThan(1500);
  await user.click(button("Show all 200,000 characters"));
  expect(card().textContent?.length).toBeGreaterThan(200_000);
});

test("several approvals form a group with a button to approve all", async () => {
  const { decide, user } = renderGroup(
    payment(),
    payment({ approvalId: "ap-2", title: "Archive" }),
  );
  const group = screen.getByRole("group", { name: "2 approvals" });
  expect(within(group).getAllByRole("region")).toHaveLength(2);
  await user.click(button("Approve all"));
  expect(decide.mock.calls).toEqual([
    ["ap-1", { approved: true }],
    ["ap-2", { approved: true }],
  ]);
});

test("the button to approve all skips decided requests", async () => {
  const { decide, user } = renderGroup(
    payment({ decision: "denied" }),
    payment({ approvalId: "ap-2", title: "Archive" }),
  );
  expect(card().textContent).toContain("denied, not sent yet");
  expect(within(card()).queryAllByRole("button")).toEqual([]);
  await user.click(button("Approve all"));
  expect(decide.mock.calls).toEqual([["ap-2", { approved: true }]]);
});

test("the focus moves to the next card of a group", () => {
  const second = payment({ approvalId: "ap-2", title: "Archive" });
  const { rerender } = renderGroup(payment(), second);
  expect(document.activeElement).toBe(card());
  rerender(payment({ decision: "approved" }), second);
  expect(document.activeElement).toBe(card("Archive"));
});
