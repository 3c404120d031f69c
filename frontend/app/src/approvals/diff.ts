/** Whether a line or a row is only in what was there before, only in what is there now, or in both. */
export type Change = "removed" | "added" | "same";

export interface Changed<T> {
  readonly change: Change;
  readonly item: T;
}

/** Longer lists are compared as wholes: the table of the comparison has their product. */
const MAX_PRODUCT = 4_000_000;

/** The items before and after, each with its change, in an order that keeps what is in both. */
export function changesBetween<T>(
  before: readonly T[],
  after: readonly T[],
  key: (item: T) => string,
): readonly Changed<T>[] {
  const marked = (items: readonly T[], change: Change) => items.map((item) => ({ change, item }));
  const [old, now] = [before.map(key), after.map(key)];
  if (old.length * now.length > MAX_PRODUCT) {
    return [...marked(before, "removed"), ...marked(after, "added")];
  }
  const width = now.length + 1;
  // The length of the longest common part of what follows each pair of positions.
  const lengths = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const changes: Changed<T>[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      changes.push({ change: "same", item: after[j] as T });
      i += 1;
      j += 1;
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      changes.push({ change: "removed", item: before[i] as T });
      i += 1;
    } else {
      changes.push({ change: "added", item: after[j] as T });
      j += 1;
    }
  }
  return [...changes, ...marked(before.slice(i), "removed"), ...marked(after.slice(j), "added")];
}

/** The lines of a text; none for an empty one. */
export function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}
