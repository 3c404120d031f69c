import { expect, test, vi } from "vitest";
import { whenBack } from "./when-back.ts";

function become(state: DocumentVisibilityState) {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue(state);
  document.dispatchEvent(new Event("visibilitychange"));
}

test("coming back is told, going away is not, and nothing after it is forgotten", () => {
  const work = vi.fn();
  const forget = whenBack(work);
  become("hidden");
  expect(work).toHaveBeenCalledTimes(0);
  become("visible");
  expect(work).toHaveBeenCalledTimes(1);
  forget();
  become("visible");
  expect(work).toHaveBeenCalledTimes(1);
});
