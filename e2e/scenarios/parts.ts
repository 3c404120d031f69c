const PART = process.env.PART ?? "all";
const TRANSPORT = /\b(sse|websocket)\b/i;
const PARTS = 3;

/**
 * Whether this run plays a scenario. Of the two that differ only in the transport `make test`
 * plays one, and the other one the next day; `PART=all`, the default, plays both.
 */
export function isPlayed(title: string, part = PART): boolean {
  const transport = TRANSPORT.exec(title)?.[1];
  if (part === "all" || transport === undefined) return true;
  const rest = title.replaceAll(transport, "");
  return (rest.length + Number(part)) % 2 === (transport.toLowerCase() === "sse" ? 0 : 1);
}

/** Whether this run plays the row of a long table, of which `make test` plays a third each day. */
export function isRowPlayed(row: number, part = PART): boolean {
  return part === "all" || row % PARTS === Number(part);
}
