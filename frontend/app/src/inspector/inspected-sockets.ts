import type { UIMessageChunk } from "ai";
import type { SluiceChatOptions } from "sluicegate/react";
import type { Inspection, Posted } from "./inspection.ts";

type SocketClass = NonNullable<SluiceChatOptions["webSocket"]>;

/** Where audio flows no transport of the AI SDK stands between: there the frames are all there is. */
const LIVE = /\/live(?:\?|$)/;

function read(data: string): Record<string, unknown> {
  try {
    return JSON.parse(data) as Record<string, unknown>;
  } catch {
    return { text: data };
  }
}

/** Sockets whose frames are written down, but for chunks that a transport has written already. */
export function inspectedSockets(inspection: Inspection): SocketClass {
  const note = (isLive: boolean, dir: "client" | "server", data: unknown) => {
    if (typeof data !== "string" || (!isLive && data.startsWith('{"type":"chunk"'))) return;
    const frame = read(data);
    switch (frame.type) {
      case "heartbeat":
        return;
      case "send":
        inspection.send({ ...frame, ...(frame.body as object) } as unknown as Posted);
        return;
      case "chunk":
        inspection.chunk(frame.chunk as UIMessageChunk);
        return;
      default:
        inspection.frame(dir, frame);
    }
  };
  return class extends WebSocket {
    readonly #isLive: boolean;

    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      this.#isLive = LIVE.test(String(url));
      this.addEventListener("message", ({ data }) => note(this.#isLive, "server", data));
    }

    override send(data: Parameters<WebSocket["send"]>[0]): void {
      note(this.#isLive, "client", data);
      super.send(data);
    }
  };
}
