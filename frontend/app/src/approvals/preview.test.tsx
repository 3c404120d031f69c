import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { button, card, isDisabled, renderGroup } from "../../testing/approval-cards.tsx";
import { payment } from "../../testing/payment-request.ts";
import type { DecisionProgress } from "./decision.ts";
import { changesBetween, linesOf } from "./diff.ts";
import { parsePreview } from "./preview-content.ts";

const TABLE = { kind: "table", columns: ["name", "age"], rows: [["a.pdf", 31] as const] };

/** The card of a call with a preview; the server knows it as `now`. */
function previewed(preview: object, now: object = { preview, digest: "d1" }, change: object = {}) {
  vi.spyOn(globalThis, "fetch").mockImplementation(() => Promise.resolve(Response.json(now)));
  return renderGroup(payment({ preview, digest: "d0", ...change }));
}

const texts = (role: string) => screen.getAllByRole(role).map((each) => each.textContent);

afterEach(() => vi.restoreAllMocks());

test("a card shows the rows that a call is about, and a yes states the digest of them", async () => {
  const { decide, user } = previewed(TABLE);
  const region = screen.getByRole("region", { name: "What this call would do" });
  expect(region.tabIndex).toBe(0);
  expect(
    within(region)
      .getAllByRole("cell")
      .map(({ textContent }) => textContent),
  ).toEqual(["a.pdf", "31"]);
  expect(card().textContent).toContain("1 row");
  await waitFor(() => expect(globalThis.fetch).toHaveBeenCalled());
  await user.click(button("Approve"));
  expect(decide.mock.calls[0]?.[1]).toMatchObject({ approved: true });
  expect(["d0", "d1"]).toContain(decide.mock.calls[0]?.[1].digest);
});

test("the card shows what the server knows now, with the arguments that were edited", async () => {
  const edited = { kind: "text", text: "nothing", editedBy: "cat" };
  const now = { preview: edited, digest: "d2", edits: { recipient: "Bob", amount: 1 } };
  const { decide, user } = previewed(TABLE, now);
  await screen.findByText("nothing");
  expect(card().textContent).toContain("With the arguments as cat has changed them.");
  expect(card().textContent).toContain("recipientBob");
  await user.click(button("Approve"));
  expect(decide.mock.calls).toEqual([["ap-1", { approved: true, digest: "d2" }]]);
});

test("a preview that has failed leaves only the denial, with its reason", async () => {
  const { decide, user } = previewed({ kind: "failed", reason: "The preview took too long." });
  expect(card().textContent).toContain("The preview took too long.");
  expect(isDisabled("Approve")).toBe(true);
  expect(isDisabled("Edit")).toBe(true);
  expect(button("Approve").getAttribute("aria-describedby")).not.toBeNull();
  await user.click(button("Approve"));
  card().focus();
  await user.keyboard("a");
  expect(decide).not.toHaveBeenCalled();
  await user.click(button("Deny"));
  await user.click(button("Deny"));
  expect(decide.mock.calls[0]?.[1]).toMatchObject({ approved: false });
});

test.each([{ kind: "chart" }, { kind: "table", columns: ["a"], rows: [[1, 2]] }, "text", 5])(
  "a preview that the page cannot read cannot be approved: %j",
  async (preview) => {
    previewed(preview as object);
    await waitFor(() => expect(isDisabled("Approve")).toBe(true));
  },
);

test("a picture is approved only when it is there", async () => {
  previewed({ kind: "image", mediaType: "image/png", sha256: "abc" });
  const picture = screen.getByRole<HTMLImageElement>("img", { name: "What this call would do" });
  expect(picture.getAttribute("src")).toBe("/api/previews/ap-1?of=abc");
  expect(isDisabled("Approve")).toBe(true);
  fireEvent.error(picture);
  await screen.findByText(/could not be loaded/, { selector: "p" });
  fireEvent.load(picture);
  await waitFor(() => expect(isDisabled("Approve")).toBe(false));
});

test("a difference has signs and not only colours", () => {
  previewed({ kind: "diff", before: "a\nb\n", after: "a\nc\n" });
  expect(texts("listitem")).toEqual([" a", "−b", "+c"]);
  expect(screen.getByRole("deletion").textContent).toBe("b");
  expect(screen.getByRole("insertion").textContent).toBe("c");
});

test("a card that was renewed marks what has changed since the approval", () => {
  const rows = [["b.pdf", 90]];
  previewed({ ...TABLE, previous: { ...TABLE, rows, approvalId: "ap-0" } });
  expect(card().textContent).toContain("It has changed since it was approved");
  const region = screen.getByRole("region", { name: "What this call would do" });
  const shown = within(region).getAllByRole("row");
  expect(shown.map(({ textContent }) => textContent)).toEqual([
    "Changenameage",
    "−goneb.pdf90",
    "+newa.pdf31",
  ]);
});

test("a renewed picture stands beside the earlier one", () => {
  const image = { kind: "image", mediaType: "image/png", sha256: "new" };
  previewed({ ...image, previous: { ...image, sha256: "old", approvalId: "ap-0" } });
  expect(screen.getAllByRole("img").map((each) => each.getAttribute("src"))).toEqual([
    "/api/previews/ap-0?of=old",
    "/api/previews/ap-1?of=new",
  ]);
});

test("a call that has changed since closes the form and is approved anew", async () => {
  const progress: DecisionProgress = {
    state: "failed",
    decision: { approved: true, digest: "d0" },
    message: "The card shows what the changed call would do now.",
    isOutdated: true,
  };
  previewed(TABLE, undefined, { progress });
  const alert = screen.getAllByRole("alert").map((each) => each.textContent);
  expect(alert.join()).toContain("The call has changed");
  expect(screen.queryByRole("button", { name: "Retry" })).toBeNull();
  expect(isDisabled("Approve")).toBe(false);
});

test("hidden characters of a preview have names", () => {
  previewed({ kind: "text", text: "pay \u202eadA" });
  expect(screen.getAllByRole("mark")[0]?.textContent).toContain("202E");
});

test.each([
  ["", "", ""],
  ["a\nb\nc", "a\nc", " a-b c"],
  ["", "a\n", "+a"],
  ["x\ny", "y\nx", "-x y+x"],
])("lines are compared: %j and %j", (before, after, expected) => {
  const signs = { added: "+", removed: "-", same: " " };
  const changes = changesBetween(linesOf(before), linesOf(after), (line) => line);
  expect(changes.map(({ change, item }) => `${signs[change]}${item}`).join("")).toBe(expected);
});

test("long texts are compared as wholes", () => {
  const before = Array.from({ length: 3_000 }, (_, index) => `${index}`);
  expect(changesBetween(before, before, (line) => line)).toHaveLength(6_000);
});

test("a call without a preview has none", () => {
  expect(parsePreview(undefined)).toBeUndefined();
  renderGroup(payment());
  expect(card().textContent).not.toContain("What this call would do");
});
