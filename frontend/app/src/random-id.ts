/** Create a unique id. `randomUUID` is available in secure contexts only. */
export function createId(): string {
  const numbers = crypto.getRandomValues(new Uint32Array(4));
  return Array.from(numbers, (number) => number.toString(36)).join("-");
}
