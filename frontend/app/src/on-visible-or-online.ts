/**
 * Call a listener each time the page becomes visible, or the network is back while it is visible;
 * returns a function that removes it.
 */
export function onVisibleOrOnline(listener: () => void): () => void {
  const onChange = () => {
    if (document.visibilityState === "visible") listener();
  };
  document.addEventListener("visibilitychange", onChange);
  addEventListener("online", onChange);
  return () => {
    document.removeEventListener("visibilitychange", onChange);
    removeEventListener("online", onChange);
  };
}
