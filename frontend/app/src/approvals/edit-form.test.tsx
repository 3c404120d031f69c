import { fireEvent, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { button, card, isDisabled, renderGroup } from "../../testing/approval-cards.tsx";
import { payment } from "../../testing/payment-request.ts";

test("arguments are edited in a form for the schema of the tool", async () => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Edit"));
  const amount = screen.getByRole("textbox", { name: "amount" });
  await user.clear(amount);
  await user.type(amount, "12.5");
  await user.click(button("Set a value: currency"));
  await user.selectOptions(screen.getByRole("combobox", { name: "currency" }), "CHF");
  await user.click(button("Approve with changes"));
  const edit = { recipient: "Ada", amount: 12.5, currency: "CHF" };
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, edit }]]);
});

test.each([
  ["50 euros", "Type a number in digits"],
  ["1,500", "“1,500” can be 1500 or 1.5. Type one of them."],
  ["0x10", "Type a number in digits"],
])("the amount %j is not sent and shows an error", async (text, message) => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Edit"));
  const amount = screen.getByRole("textbox", { name: "amount" });
  await user.clear(amount);
  await user.type(amount, text);
  await user.click(button("Approve with changes"));
  expect(decide).not.toHaveBeenCalled();
  expect(card().textContent).toContain(message);
});

test("unchanged fields keep their arguments exactly", async () => {
  const input = { recipient: "Ada\r\nLovelace", amount: 1e21, items: [1e-7], currency: "USD" };
  const { decide, user } = renderGroup(payment({ input }));
  expect(screen.getByRole("row", { name: /^amount/ }).textContent).toBe(
    "amount1000000000000000000000 USD",
  );
  await user.click(button("Edit"));
  expect(screen.getByRole<HTMLSelectElement>("combobox", { name: "currency" }).value).toBe("USD");
  await user.click(button("Approve with changes"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, edit: input }]]);
});

test("the form shows the requested value beside a changed one", async () => {
  const { user } = renderGroup(payment());
  await user.click(button("Edit"));
  expect(card().textContent).not.toContain("Changed;");
  await user.type(screen.getByRole("textbox", { name: "amount" }), "0");
  expect(card().textContent).toContain("Changed; the agent asked for 50.");
});

test("keys such as __proto__ are shown and edited like any other", async () => {
  const input = JSON.parse('{"__proto__":"Ada","constructor":{"prototype":1},"toString":"x"}');
  const schema = JSON.parse(
    '{"properties":{"__proto__":{"type":"string"},"valueOf":{"type":"string"}}}',
  );
  const { decide, user } = renderGroup(payment({ input, descriptor: { editable: true, schema } }));
  expect(screen.getAllByRole("rowheader").map(({ textContent }) => textContent)).toEqual([
    "__proto__",
    "constructor",
    "prototype",
    "toString",
  ]);
  await user.click(button("Edit"));
  await user.type(screen.getByRole("textbox", { name: "__proto__" }), " B");
  await user.click(button("Approve with changes"));
  const [[, { edit }]] = decide.mock.calls as [[string, { edit: object }]];
  expect(JSON.stringify(edit)).toBe(
    '{"__proto__":"Ada B","constructor":{"prototype":1},"toString":"x"}',
  );
});
test.each(["{Enter}", "{Escape}"])("%s in the form approves nothing", async (key) => {
  const { decide, user } = renderGroup(payment());
  await user.click(button("Edit"));
  await user.type(screen.getByRole("textbox", { name: "amount" }), `5${key}`);
  expect(decide).not.toHaveBeenCalled();
});

test("the form names characters that can mislead", async () => {
  const { user } = renderGroup(payment({ input: { recipient: "A\u202eda", amount: 5 } }));
  await user.click(button("Edit"));
  expect(card().textContent).toContain("Contains U+202E (right-to-left override)");
  await user.type(screen.getByRole("textbox", { name: "recipient" }), "а");
  expect(card().textContent).toContain("Contains Cyrillic ‘а’ (U+0430) among Latin letters.");
});

test("the form takes the focus and returns it to the card", async () => {
  const { user } = renderGroup(payment());
  await user.click(button("Edit"));
  expect(document.activeElement).toBe(screen.getByRole("textbox", { name: "recipient" }));
  await user.keyboard("{Escape}");
  expect(document.activeElement).toBe(card());
});

/** The schema of a Python function, as ADK declares it. */
const ORDER = {
  $defs: {
    Address: {
      type: "object",
      description: "Where it is delivered.",
      properties: {
        city: { type: "string" },
        floor: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
      },
      required: ["city"],
    },
    Item: {
      type: "object",
      properties: {
        article: { type: "string" },
        count: { type: "integer" },
        gift: { type: "boolean", default: false },
      },
      required: ["article", "count"],
    },
  },
  type: "object",
  properties: {
    items: { type: "array", items: { $ref: "#/$defs/Item" } },
    address: { $ref: "#/$defs/Address" },
    delivery: { type: "string", format: "date" },
    notify: { anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }] },
    limit: { anyOf: [{ type: "number" }, { type: "string", pattern: "^[0-9.]+$" }] },
    options: { type: "object", additionalProperties: true },
  },
  required: ["items", "address", "delivery"],
};

const CALL = {
  items: [
    { article: "Paper", count: 20 },
    { article: "Pencils", count: 5, gift: true },
  ],
  address: { city: "Bern", floor: "2" },
  delivery: "2026-12-04",
  notify: ["ada@example.org", "bob@example.org"],
  limit: "0050.10",
  options: { big: 9007199254740991, small: 1e-7 },
};

function renderOrder(input: object = CALL, schema: object = ORDER) {
  return renderGroup(payment({ input, descriptor: { editable: true, schema } }));
}

/** Approve the form, and return the edited arguments. */
async function approved({ decide, user }: ReturnType<typeof renderGroup>): Promise<unknown> {
  await user.click(button("Approve with changes"));
  const [[, decision]] = decide.mock.calls as [[string, { edit: unknown }]];
  return decision.edit;
}

const group = (name: string) => within(screen.getByRole("group", { name }));
const textbox = (name: string, inside = "Edit the arguments") =>
  group(inside).getByRole<HTMLInputElement>("textbox", { name });

test("lists, nested objects, dates and booleans are fields, and keep what was not touched", async () => {
  const rendered = renderOrder();
  const { user } = rendered;
  await user.click(button("Edit"));
  expect(group("address").getAllByRole("textbox")).toHaveLength(2);
  expect(screen.getByLabelText<HTMLInputElement>("delivery").type).toBe("date");
  expect(screen.getByRole("group", { name: "Edit the arguments" }).textContent).toContain(
    "Friday, 4 December 2026",
  );
  expect(group("items 2").getByRole<HTMLInputElement>("checkbox", { name: "gift" }).checked).toBe(
    true,
  );
  expect(textbox("limit").value).toBe("0050.10");
  expect(textbox("options").value).toContain("9007199254740991");
  await user.clear(textbox("city", "address"));
  await user.type(textbox("city", "address"), "Basel");
  expect(await approved(rendered)).toStrictEqual({
    ...CALL,
    address: { city: "Basel", floor: "2" },
  });
});

test("items of lists are added and removed", async () => {
  const rendered = renderOrder();
  const { user } = rendered;
  await user.click(button("Edit"));
  await user.click(button("Remove: notify 1"));
  expect(document.activeElement).toBe(textbox("notify 1", "notify"));
  expect(card().textContent).toContain('Changed; the agent asked for [ "ada@example.org"');
  await user.click(button("Add an item: notify"));
  expect(document.activeElement).toBe(textbox("notify 2", "notify"));
  await user.keyboard("eve@example.org");
  await user.click(button("Remove: items 1"));
  await user.click(button("Add an item: items"));
  await user.type(textbox("article", "items 2"), "Glue");
  await user.type(textbox("count", "items 2"), "3");
  expect(await approved(rendered)).toStrictEqual({
    ...CALL,
    items: [CALL.items[1], { article: "Glue", count: 3 }],
    notify: ["bob@example.org", "eve@example.org"],
  });
});

test("optional fields are left out and set, and null stays null", async () => {
  const rendered = renderOrder({ ...CALL, address: { city: "Bern", floor: null } });
  const { user } = rendered;
  await user.click(button("Edit"));
  expect(group("address").getByText("Nothing (null).")).toBeTruthy();
  await user.click(button("Leave out: notify"));
  expect(document.activeElement).toBe(button("Set a value: notify"));
  await user.click(group("items 1").getByRole("button", { name: "Set a value: gift" }));
  await user.click(group("items 1").getByRole("checkbox", { name: "gift" }));
  const { notify: _, ...others } = CALL;
  expect(await approved(rendered)).toStrictEqual({
    ...others,
    address: { city: "Bern", floor: null },
    items: [{ article: "Paper", count: 20, gift: true }, CALL.items[1]],
  });
});

test("a field that is left out names the value that the tool uses", async () => {
  const descriptor = { editable: true, defaults: { currency: "EUR" } };
  const schema = { properties: { currency: { type: "string" } } };
  const { user } = renderGroup(payment({ descriptor: { ...descriptor, schema } }));
  await user.click(button("Edit"));
  expect(card().textContent).toContain("Left out; the tool uses EUR.");
});

test("errors are beside their fields, and the first one has the focus", async () => {
  const { decide, user } = renderOrder();
  await user.click(button("Edit"));
  await user.type(textbox("count", "items 1"), ".5");
  await user.type(textbox("options"), "]");
  fireEvent.change(screen.getByLabelText("delivery"), { target: { value: "" } });
  await user.click(button("Approve with changes"));
  expect(decide).not.toHaveBeenCalled();
  const errorOf = (field: HTMLElement) => {
    const ids = field.getAttribute("aria-describedby")?.split(" ") ?? [];
    return document.getElementById(ids.at(-1) ?? "")?.textContent;
  };
  expect(errorOf(textbox("count", "items 1"))).toBe("Type a whole number.");
  expect(errorOf(screen.getByLabelText("delivery"))).toBe("Enter a date.");
  expect(errorOf(textbox("options"))).toContain("Type JSON");
  expect(document.activeElement).toBe(textbox("count", "items 1"));
});

test.each([
  [
    '{"rate": 0.1000000000000000055}',
    "The number 0.1000000000000000055 has too many digits; it would be sent as 0.1.",
  ],
  [
    '["\\"0.10", 12345678901234567.5]',
    "The number 12345678901234567.5 has too many digits; it would be sent as 12345678901234568.",
  ],
  ["[1e-400]", "The number 1e-400 has too many digits; it would be sent as 0."],
  ["9007199254740993", "The number 9007199254740993 has too many digits; it would be sent"],
  ["[1e999]", "The number 1e999 has too many digits."],
])("JSON with a number that would be rounded is not sent: %s", async (text, message) => {
  const { decide, user } = renderOrder();
  await user.click(button("Edit"));
  fireEvent.change(textbox("options"), { target: { value: text } });
  await user.click(button("Approve with changes"));
  expect(decide).not.toHaveBeenCalled();
  expect(card().textContent).toContain(message);
});

test("JSON with numbers that keep their value in another form is sent", async () => {
  const rendered = renderOrder();
  await rendered.user.click(button("Edit"));
  const text = '{"a": [0.10, 1.50e2, 1E+3, -0.5, 1e-7, 100, 0.0], "b": "0.1000000000000000055"}';
  fireEvent.change(textbox("options"), { target: { value: text } });
  expect(await approved(rendered)).toStrictEqual({
    ...CALL,
    options: { a: [0.1, 150, 1000, -0.5, 1e-7, 100, 0], b: "0.1000000000000000055" },
  });
});

test("values that do not have the form of their schema are kept as they are", async () => {
  const input = {
    items: "none",
    address: [1],
    delivery: "tomorrow",
    notify: [1, "a", null],
    amount: "50",
  };
  const schema = { ...ORDER, properties: { ...ORDER.properties, amount: { type: "number" } } };
  const rendered = renderOrder(input, schema);
  await rendered.user.click(button("Edit"));
  expect(textbox("amount").value).toBe('"50"');
  expect(await approved(rendered)).toStrictEqual(input);
});

test("schemas that refer to themselves are fields until a depth", async () => {
  const node = {
    type: "object",
    properties: { next: { $ref: "#/$defs/Node" }, loop: { $ref: "#/$defs/Loop" } },
    required: ["next"],
  };
  const schema = {
    $defs: { Node: node, Loop: { anyOf: [{ $ref: "#/$defs/Loop" }, { type: "null" }] } },
    properties: { node: { $ref: "#/$defs/Node" } },
    required: ["node"],
  };
  const rendered = renderOrder({ node: { next: { next: {} } } }, schema);
  await rendered.user.click(button("Edit"));
  expect(screen.getAllByRole("group", { name: "next" }).length).toBeGreaterThan(1);
  expect(isDisabled("Approve with changes")).toBe(false);
});

test("an option of another type than text is sent as it is declared", async () => {
  const schema = { properties: { rooms: { enum: [1, 2, "all"] } } };
  const rendered = renderOrder({ rooms: 1 }, schema);
  await rendered.user.click(button("Edit"));
  await rendered.user.selectOptions(screen.getByRole("combobox", { name: "rooms" }), "2");
  expect(await approved(rendered)).toStrictEqual({ rooms: 2 });
});
