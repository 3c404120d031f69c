import { cleanup } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// What the kit asks of a browser and jsdom does not have.
vi.stubGlobal("matchMedia", (query: string) => ({
  matches: false,
  media: query,
  addEventListener() {},
  removeEventListener() {},
  addListener() {},
  removeListener() {},
}));
vi.stubGlobal(
  "ResizeObserver",
  class {
    observe() {}
    unobserve() {}
    disconnect() {}
  },
);

Object.defineProperty(document, "fonts", { value: new EventTarget() });
Element.prototype.scrollTo = () => {};

afterEach(() => {
  cleanup();
});
