/** A whole number with its thousands apart; the browser's own way takes 40 ms the first time. */
export function counted(number: number): string {
  return String(number).replace(/\B(?=(?:\d{3})+$)/g, ",");
}
