/** Milliseconds that a burst of chunks may keep the page's thread at once. */
const BURST = 10;

/** Comes back once everything else that waits for the page's thread has had its turn. */
function others(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

/**
 * A function to await between two chunks. Those that lie ready are read without a pause between
 * them, however many they are; this pauses where they have kept the thread for long.
 */
export function breath(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < BURST) return;
    return others().then(() => {
      since = performance.now();
    });
  };
}
