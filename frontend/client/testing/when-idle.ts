/**
 * Wait until a chat is idle and stays idle for three turns of the event loop, which is longer than
 * any response from memory takes.
 */
export async function whenIdle(chat: { readonly status: string }): Promise<void> {
  let idleTurns = 0;
  for (let turns = 0; turns < 10_000; turns += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    idleTurns = chat.status === "ready" || chat.status === "error" ? idleTurns + 1 : 0;
    if (idleTurns === 3) return;
  }
  throw new Error(`the chat did not become idle, its status is ${chat.status}`);
}
