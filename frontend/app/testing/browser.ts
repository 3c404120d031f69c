import { cleanup } from "@testing-library/react";
import { afterEach } from "vitest";

// What the kit asks of a browser and jsdom does not have.
Object.assign(globalThis, {
  matchMedia: (query: string) => ({
    matches: false,
    media: query,
    addEventListener() {},
    removeEventListener() {},
  }),
  ResizeObserver: class {
    observe() {}
    unobserve() {}
    disconnect() {}
  },
});
Object.defineProperty(document, "fonts", { value: new EventTarget() });
Element.prototype.scrollTo = () => {};

afterEach(() => {
  cleanup();
});
