import type { Inspection } from "./inspection.ts";

/** The browser's `fetch`, with the requests to go on with a chat written down. */
export function inspectedFetch(inspection: Inspection): typeof fetch {
  return (address, init) => {
    const { pathname } = new URL(String(address), location.href);
    if (init?.method === "POST" && pathname.endsWith("/chat")) {
      inspection.send(JSON.parse(String(init.body)));
    }
    return fetch(address, init);
  };
}
