import { expect, test, vi } from "vitest";
import { onVisibleOrOnline } from "./on-visible-or-online.ts";

function setVisibility(state: DocumentVisibilityState) {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue(state);
  document.dispatchEvent(new Event("visibilitychange"));
}

test("the listener is called when the page becomes visible, until it is removed", () => {
  const listener = vi.fn();
  const remove = onVisibleOrOnline(listener);
  setVisibility("hidden");
  expect(listener).toHaveBeenCalledTimes(0);
  setVisibility("visible");
  expect(listener).toHaveBeenCalledTimes(1);
  remove();
  setVisibility("visible");
  expect(listener).toHaveBeenCalledTimes(1);
});
