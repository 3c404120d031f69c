/** Call a listener each time the page becomes visible; returns a function that removes it. */
export function onPageVisible(listener: () => void): () => void {
  const onChange = () => {
    if (document.visibilityState === "visible") listener();
  };
  document.addEventListener("visibilitychange", onChange);
  return () => document.removeEventListener("visibilitychange", onChange);
}
