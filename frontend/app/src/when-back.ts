/** Do something each time the page is seen again, until the returned function is called. */
export function whenBack(work: () => void): () => void {
  const onChange = () => {
    if (document.visibilityState === "visible") work();
  };
  document.addEventListener("visibilitychange", onChange);
  return () => document.removeEventListener("visibilitychange", onChange);
}
