import { fireEvent, screen, within } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { button, card, isDisabled, renderGroup } from "../../testing/approval-cards.tsx";
import { payment } from "../../testing/payment-request.ts";
import { renderPage } from "../../testing/render.tsx";
import { ApprovalGroup } from "./approval-group.tsx";

test("a card shows the tool, its arguments, the reason and the agent", () => {
  renderGroup(payment({ agent: "shop/bookkeeper", reason: "Over the limit" }));
  expect(card().textContent).toContain("shop/bookkeeper wants to call process_payment");
  expect(card().textContent).toContain("Over the limit");
  const rows = screen.getAllByRole("row").map((row) => row.textContent);
  expect(rows).toEqual(["recipientAda", "amount50"]);
});

test("a card shows what the worker of a tool says of it, as the worker's words", () => {
  const origin = {
    worker: "shop",
    tool: "files.rm",
    description: "Removes \u202eall.",
    isDestructive: true,
  };
  renderGroup(payment({ origin }));
  expect(card().textContent).toMatch(
    /From the worker shop, which calls it files\.rm: “Removes .*U\+202E.*all\.”/,
  );
  expect(card().textContent).toContain("its worker warns: may destroy data");
});

test("a phrase that approves the call is shown while the person speaks", () => {
  const request = payment({ descriptor: { byVoice: "confirm \u202epayment" } });
  const { rerender } = renderPage(<ApprovalGroup requests={[request]} onDecide={vi.fn()} />);
  expect(card().textContent).not.toContain("confirm");
  rerender(<ApprovalGroup requests={[request]} onDecide={vi.fn()} isSpoken />);
  expect(card().textContent).toMatch(/You can also say: confirm .*U\+202E.*payment/);
});

test("no key decides on the card itself, but its letters", async () => {
  const { decide, user } = renderGroup(payment());
  card().focus();
  await user.keyboard("{Enter}{Escape} {Enter}y{Control>}a{/Control}");
  expect(decide).not.toHaveBeenCalled();
});

test("a new card does not take the focus", () => {
  renderGroup(payment());
  expect(document.activeElement).toBe(document.body);
});

test("letters press the buttons of a card, outside of its fields", async () => {
  const { decide, user } = renderGroup(payment());
  card().focus();
  await user.keyboard("d");
  await user.keyboard("a");
  expect(screen.getByRole<HTMLInputElement>("textbox").value).toBe("a");
  await user.keyboard("{Escape}");
  expect(decide).not.toHaveBeenCalled();
  await user.keyboard("a");
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true }]]);
});

test("a repeated letter decides nothing", () => {
  const { decide } = renderGroup(payment());
  card().focus();
  fireEvent.keyDown(card(), { key: "a", repeat: true });
  expect(decide).not.toHaveBeenCalled();
});

test("letters can be turned off", async () => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Turn the keys off"));
  card().focus();
  await user.keyboard("a");
  expect(decide).not.toHaveBeenCalled();
  await user.click(button("Turn the keys on"));
  await user.keyboard("a");
  expect(decide).toHaveBeenCalledOnce();
});

test("a button that has just arrived does not accept", async () => {
  const decide = vi.fn();
  renderPage(<ApprovalGroup requests={[payment()]} onDecide={decide} />, 60_000);
  expect(button("Approve").getAttribute("aria-disabled")).toBe("true");
  await userEvent.setup().click(button("Approve"));
  expect(decide).not.toHaveBeenCalled();
  expect(button("Deny").getAttribute("aria-disabled")).toBe("false");
});

test("Escape in the reason cancels the denial", async () => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Deny"));
  await user.type(screen.getByRole("textbox"), "too much{Escape}");
  expect(decide).not.toHaveBeenCalled();
  expect(document.activeElement).toBe(card());
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
  ["Approve", "{Enter}", { approved: true }],
  ["Deny", "{Enter}{Enter}", { approved: false }],
])("%s can be pressed with the keyboard", async (name, keys, decision) => {
  const { decide, user } = renderGroup(payment());
  button(name).focus();
  await user.keyboard(keys);
  expect(decide.mock.calls).toEqual([["ap-1", decision]]);
});

test("a denial includes its reason", async () => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Deny"));
  await user.type(screen.getByRole("textbox"), "  too much ");
  await user.click(button("Deny"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: false, reason: "too much" }]]);
});

test.each([
  ["Edit", { editable: false, rememberable: true }],
  ["Do not ask again…", { editable: true, rememberable: false }],
])("%s is shown only if the descriptor permits it", (name, descriptor) => {
  renderGroup(payment({ descriptor }));
  expect(screen.queryByRole("button", { name })).toBeNull();
  expect(button("Approve")).toBeTruthy();
});

test("defaults that will take effect are shown as such", () => {
  const descriptor = { editable: true, defaults: { currency: "EUR", urgent: false, amount: 1 } };
  renderGroup(payment({ descriptor }));
  expect(screen.getAllByRole("row").map((row) => row.textContent)).toEqual([
    "recipientAda",
    "amount50 EUR",
    "currencyEUR (default of the tool, not given by the agent)",
    "urgentfalse (default of the tool, not given by the agent)",
  ]);
});

test("the card names characters that can mislead", () => {
  renderGroup(
    payment({
      input: { recipient: "Аda", note: { items: ["a\u202eb"] }, amount: 5 },
      agent: "shop/bіlling",
    }),
  );
  const content = card().textContent;
  expect(content).toContain("Contains Cyrillic ‘А’ (U+0410) among Latin letters.");
  expect(content).toContain("items[0]: Contains U+202E (right-to-left override)");
  expect(content).toContain("Agent: Contains Cyrillic ‘і’ (U+0456) among Latin letters.");
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

const LONG = {
  "a text of 200,000 characters": "x".repeat(200_000),
  "a text of many lines": `50${"\n".repeat(40)}000`,
  "an array of many items": Array.from({ length: 90 }, () => 0),
};

test.each(Object.entries(LONG))(
  "%s is shown in full before it can be approved",
  async (_, text) => {
    const { decide, user } = renderGroup(payment({ input: { text } }));
    const full = typeof text === "string" ? text : JSON.stringify(text, null, 2);
    expect(card().textContent?.length).toBeLessThan(1500);
    expect(card().textContent).toContain(
      "A long value is not shown in full. Open it before you approve.",
    );
    for (const name of ["Approve", "Edit", "Do not ask again…"]) {
      expect(isDisabled(name)).toBe(true);
    }
    expect(isDisabled("Deny")).toBe(false);
    await user.click(screen.getByRole("button", { name: /^Show all [\d,]+ characters$/ }));
    expect(screen.getByRole("row").textContent).toContain(full);
    expect(card().textContent).not.toContain("not shown in full");
    await user.click(button("Show less"));
    await user.click(button("Approve"));
    expect(decide.mock.calls).toEqual([["ap-1", { approved: true }]]);
  },
);

test("each long value of a group is shown in full before all can be approved", async () => {
  const long = (letter: string) => letter.repeat(1000);
  const { decide, user } = renderGroup(
    payment({ input: { a: long("a"), b: long("b") } }),
    payment({ approvalId: "ap-2", title: "Archive", reason: long("c") }),
  );
  expect(isDisabled("Approve all")).toBe(true);
  const buttons = () => screen.getAllByRole("button", { name: "Show all 1,000 characters" });
  for (const left of [3, 2, 1]) {
    expect(buttons()).toHaveLength(left);
    expect(isDisabled("Approve all")).toBe(true);
    await user.click(buttons()[0] as HTMLElement);
  }
  await user.click(button("Approve all"));
  expect(decide).toHaveBeenCalledTimes(2);
});

test("a value stays read while the form is open", async () => {
  const { user } = renderGroup(payment({ input: { recipient: "x".repeat(1000), amount: 5 } }));
  await user.click(button("Show all 1,000 characters"));
  await user.click(button("Edit"));
  await user.click(button("Cancel"));
  expect(isDisabled("Approve")).toBe(false);
});

test("the changes of a tool since its grant are shown", async () => {
  const schema = (amount: object, ...required: string[]) => ({
    properties: { amount, recipient: { type: "string" } },
    required,
  });
  const parameters = [
    schema({ type: "integer" }, "amount"),
    { ...schema({ type: "number" }), properties: { amount: { type: "number" }, iban: {} } },
  ];
  const description = ["Pay a person.", `Pay anybody, ${"very ".repeat(200)}much.`];
  const { user } = renderGroup(payment({ descriptor: { changed: { description, parameters } } }));
  const notice = screen.getByRole("alert");
  expect(notice.textContent).toContain("This tool has changed since you allowed it in this chat");
  expect(notice.textContent).toContain("DescriptionBefore: Pay a person.Now: Pay anybody, ");
  for (const change of [
    'Argument amountBefore: required, {"type":"integer"}Now: optional, {"type":"number"}',
    'Argument recipientBefore: optional, {"type":"string"}Now: no such argument',
    "Argument ibanBefore: no such argumentNow: optional, {}",
  ]) {
    expect(notice.textContent).toContain(change);
  }
  expect(isDisabled("Approve")).toBe(true);
  await user.click(within(notice).getByRole("button", { name: /^Show all/ }));
  expect(isDisabled("Approve")).toBe(false);
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

const denied = { state: "accepted", decision: { approved: false }, trace: {} } as const;

test("the button to approve all skips decided requests", async () => {
  const { decide, user } = renderGroup(
    payment({ progress: denied }),
    payment({ approvalId: "ap-2", title: "Archive" }),
  );
  expect(card().textContent).toContain("denied");
  expect(within(card()).queryAllByRole("button")).toEqual([]);
  await user.click(button("Approve all 1"));
  expect(decide.mock.calls).toEqual([["ap-2", { approved: true }]]);
});

test("an open form is not discarded by approving all", async () => {
  const { user } = renderGroup(payment(), payment({ approvalId: "ap-2", title: "Archive" }));
  await user.click(within(card()).getByRole("button", { name: "Edit" }));
  expect(isDisabled("Approve all")).toBe(true);
  await user.click(button("Cancel"));
  expect(isDisabled("Approve all")).toBe(false);
});

test("all pages are seen before all requests are approved, and forms stay open", async () => {
  const requests = Array.from({ length: 12 }, (_, index) =>
    payment({ approvalId: `ap-${index}`, title: `Pay ${index}` }),
  );
  const { decide, user } = renderGroup(...requests);
  expect(screen.getAllByRole("region")).toHaveLength(5);
  await user.click(within(card("Pay 0")).getByRole("button", { name: "Edit" }));
  await user.type(screen.getByRole("textbox", { name: "amount" }), "0");
  for (const _ of [2, 3]) {
    expect(isDisabled("Approve all")).toBe(true);
    await user.click(button("Next"));
  }
  expect(card("Pay 11")).toBeTruthy();
  await user.click(button("Previous"));
  await user.click(button("Previous"));
  expect(screen.getByRole<HTMLInputElement>("textbox", { name: "amount" }).value).toBe("500");
  await user.click(button("Cancel"));
  await user.click(button("Approve all"));
  expect(decide).toHaveBeenCalledTimes(12);
});

test("a failed decision is shown with the sentence of the server, and sent again", async () => {
  const decision = { approved: true, edit: { recipient: "Ada", amount: 1 } } as const;
  const progress = { state: "failed", decision, message: "Too many requests." } as const;
  const { decide, user } = renderGroup(payment({ progress }));
  expect(screen.getByRole("alert").textContent).toContain("Too many requests.");
  await user.click(button("Retry"));
  expect(decide.mock.calls).toEqual([["ap-1", decision]]);
});

test("an expired request has no buttons", () => {
  renderGroup(payment({ descriptor: { editable: true, expiresAt: "2026-01-01T00:00:00Z" } }));
  expect(within(card()).queryAllByRole("button")).toEqual([]);
  expect(card().textContent).toContain("The time to decide is over. The call does not run.");
});

test("lists, dates, amounts and objects are shown as fields", () => {
  const input = {
    amount: 12500.5,
    currency: "EUR",
    due: "2026-03-02",
    recipients: ["Ada", "Bob"],
    address: { city: "Bern", zip: "3000" },
  };
  renderGroup(payment({ input }));
  const rows = within(screen.getByRole("table", { name: "Arguments" }));
  expect(rows.getByRole("row", { name: /^amount/ }).textContent).toBe("amount12500.5 EUR");
  expect(rows.getByRole("row", { name: /^due/ }).textContent).toBe(
    "due2026-03-02Monday, 2 March 2026",
  );
  expect(rows.getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([
    "Ada",
    "Bob",
  ]);
  expect(rows.getByRole("table", { name: "address" }).textContent).toBe("cityBernzip3000");
});
