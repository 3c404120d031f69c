type Listener = (socket: WebSocket) => void;

const sockets = new Set<WebSocket>();
const listeners = new Set<Listener>();

/** The browser's `WebSocket`, whose open sockets can be observed. */
export class ListedWebSocket extends WebSocket {
  constructor(url: string | URL, protocols?: string | string[]) {
    super(url, protocols);
    sockets.add(this);
    this.addEventListener("close", () => sockets.delete(this));
    for (const listener of listeners) listener(this);
  }
}

/** Call a listener for each open socket and each new one; returns a function that removes it. */
export function onSocket(listener: Listener): () => void {
  listeners.add(listener);
  for (const socket of sockets) listener(socket);
  return () => listeners.delete(listener);
}
