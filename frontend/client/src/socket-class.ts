/** A WebSocket class; the AI SDK, browsers and `ws` each declare a type of their own. */
export type SocketClass = new (url: string | URL, protocols?: string | string[]) => object;
