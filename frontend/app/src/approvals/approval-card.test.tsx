import { screen, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { draw } from "../../testing/draw.tsx";
import { payment } from "../../testing/requests.ts";
import { ApprovalGroup } from "./approval-group.tsx";
import type { ApprovalRequest } from "./request.ts";

function open(...requests: ApprovalRequest[]) {
  const decide = vi.fn();
  const drawn = draw(<ApprovalGroup requests={requests} onDecide={decide} />);
  const redraw = (...next: ApprovalRequest[]) =>
    drawn.redraw(<ApprovalGroup requests={next} onDecide={decide} />);
  return { decide, redraw, user: userEvent.setup() };
}

const card = (name = "Send money") => screen.getByRole("region", { name: `Approval: ${name}` });
const button = (name: string) => screen.getByRole("button", { name });

test("a card shows the tool, its arguments field by field, the hint and who asks", () => {
  open(payment({ descriptor: { agent: "bookkeeper" }, reason: "Over the limit" }));
  expect(card().textContent).toContain("bookkeeper wants to call process_payment");
  expect(card().textContent).toContain("Over the limit");
  const rows = screen.getAllByRole("row").map((row) => row.textContent);
  expect(rows).toEqual(["recipientAda", "amount50"]);
});

test("the focus goes to the card itself, where no key decides anything", async () => {
  const { decide, user } = open(payment());
  expect(document.activeElement).toBe(card());
  await user.keyboard("{Enter}{Escape} {Enter}y");
  expect(decide).not.toHaveBeenCalled();
});

test("whoever is writing is not interrupted", () => {
  const box = document.body.appendChild(document.createElement("textarea"));
  box.value = "half a senten";
  box.focus();
  open(payment());
  expect(document.activeElement).toBe(box);
  box.remove();
});

test.each(["{Enter}", "{Escape}"])("%s in the reason decides nothing", async (key) => {
  const { decide, user } = open(payment());
  await user.type(screen.getByRole("textbox"), `too much${key}`);
  expect(decide).not.toHaveBeenCalled();
});

test("a key that is held down does not press a button that comes under it", () => {
  const { decide } = open(payment());
  button("Approve").focus();
  const held = new KeyboardEvent("keydown", {
    key: "Enter",
    repeat: true,
    bubbles: true,
    cancelable: true,
  });
  button("Approve").dispatchEvent(held);
  expect(held.defaultPrevented).toBe(true);
  expect(decide).not.toHaveBeenCalled();
});

test.each([
  ["Approve", { approved: true }],
  ["Always in this chat", { approved: true, remember: true }],
  ["Deny", { approved: false }],
])("%s decides by keyboard too, once it has the focus", async (name, decision) => {
  const { decide, user } = open(payment());
  button(name).focus();
  await user.keyboard("{Enter}");
  expect(decide.mock.calls).toEqual([["ap-1", decision]]);
});

test("a denial takes its reason along", async () => {
  const { decide, user } = open(payment());
  await user.type(screen.getByRole("textbox"), "  too much ");
  await user.click(button("Deny"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: false, reason: "too much" }]]);
});

test.each([
  ["Edit", { editable: false, rememberable: true }],
  ["Always in this chat", { editable: true, rememberable: false }],
])("%s is offered only where the server allows it", (name, descriptor) => {
  open(payment({ descriptor }));
  expect(screen.queryByRole("button", { name })).toBeNull();
  expect(button("Approve")).toBeTruthy();
});

test("arguments are edited in a form of the tool's schema", async () => {
  const { decide, user } = open(payment());
  await user.click(button("Edit"));
  const amount = screen.getByRole("textbox", { name: "amount" });
  await user.clear(amount);
  await user.type(amount, "12,5");
  await user.selectOptions(screen.getByRole("combobox", { name: "currency" }), "CHF");
  await user.click(button("Approve with changes"));
  const edited = { recipient: "Ada", amount: 12.5, currency: "CHF" };
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, edited }]]);
});

test("what does not fit the schema is not sent and says what to type", async () => {
  const { decide, user } = open(payment());
  await user.click(button("Edit"));
  await user.type(screen.getByRole("textbox", { name: "amount" }), " euros");
  await user.click(button("Approve with changes"));
  expect(decide).not.toHaveBeenCalled();
  expect(card().textContent).toContain("Type a number.");
});

test.each(["{Enter}", "{Escape}"])("%s in the form approves nothing", async (key) => {
  const { decide, user } = open(payment());
  await user.click(button("Edit"));
  await user.type(screen.getByRole("textbox", { name: "amount" }), `5${key}`);
  expect(decide).not.toHaveBeenCalled();
});

test("what cannot be seen is named in the form too", async () => {
  const { user } = open(payment({ input: { recipient: "A\u202eda", amount: 5 } }));
  await user.click(button("Edit"));
  expect(card().textContent).toContain("Holds what cannot be seen: U+202E");
});

test("the focus goes into the form, and back to the card when it is left", async () => {
  const { user } = open(payment());
  await user.click(button("Edit"));
  expect(document.activeElement).toBe(screen.getByRole("textbox", { name: "recipient" }));
  await user.keyboard("{Escape}");
  expect(document.activeElement).toBe(card());
});

test("nothing of a tool becomes markup, and what cannot be seen is named", () => {
  const evil = "<img src=x onerror=alert(1)>\u202egnp.exe\u200b\u200b";
  open(payment({ title: evil, toolName: "p\u2066ay", input: { [`na${"\u200d"}me`]: evil } }));
  expect(document.querySelector("img, script")).toBeNull();
  const shown = screen.getByRole("region").textContent;
  expect(shown).toContain("<img src=x onerror=alert(1)>U+202Egnp.exeU+200B ×2");
  expect(shown).toContain("pU+2066ay");
  expect(shown).toContain("naU+200Dme");
  expect(shown).not.toMatch(/[\u202e\u2066\u200b\u200d]/);
  expect(screen.getByRole("region").getAttribute("aria-label")).toContain("⟨U+202E⟩");
});

test("a very long argument is cut until somebody asks for the rest", async () => {
  const { user } = open(payment({ input: { text: "x".repeat(200_000) } }));
  expect(card().textContent?.length).toBeLessThan(1500);
  await user.click(button("Show all 200,000 characters"));
  expect(card().textContent?.length).toBeGreaterThan(200_000);
});

test("several approvals stand in one group with one button for all of them", async () => {
  const { decide, user } = open(payment(), payment({ approvalId: "ap-2", title: "Archive" }));
  const group = screen.getByRole("group", { name: "2 approvals" });
  expect(within(group).getAllByRole("region")).toHaveLength(2);
  await user.click(button("Approve all"));
  expect(decide.mock.calls).toEqual([
    ["ap-1", { approved: true }],
    ["ap-2", { approved: true }],
  ]);
});

test("what is answered already is not answered again by the button for all", async () => {
  const { decide, user } = open(
    payment({ answer: "denied" }),
    payment({ approvalId: "ap-2", title: "Archive" }),
  );
  expect(card().textContent).toContain("denied, not sent yet");
  expect(within(card()).queryAllByRole("button")).toEqual([]);
  await user.click(button("Approve all"));
  expect(decide.mock.calls).toEqual([["ap-2", { approved: true }]]);
});

test("the focus goes on to the next card of a group", () => {
  const second = payment({ approvalId: "ap-2", title: "Archive" });
  const { redraw } = open(payment(), second);
  expect(document.activeElement).toBe(card());
  redraw(payment({ answer: "approved" }), second);
  expect(document.activeElement).toBe(card("Archive"));
});
