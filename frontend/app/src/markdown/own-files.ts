/** Whether an address is a file of this server; nothing else is ever loaded into the page. */
export function isOwnFile(address: string, page: string = location.href): boolean {
  if (!URL.canParse(address, page)) return false;
  const { origin, pathname, protocol } = new URL(address, page);
  return (
    protocol.startsWith("http") &&
    origin === new URL(page).origin &&
    /\/chats\/[^/]+\/files\/[^/]+$/.test(pathname)
  );
}

/** Whether an address can be shown as a picture without asking another host for it. */
export function isOwnPicture(address: string): boolean {
  return isOwnFile(address) || /^data:image\/(?:png|jpeg|gif|webp|avif);base64,/i.test(address);
}

/** An address that a person may follow, or undefined; nothing that runs when it is opened. */
export function safeLink(address: string | undefined): string | undefined {
  if (!address || !URL.canParse(address, location.href)) return undefined;
  const { protocol } = new URL(address, location.href);
  return ["http:", "https:", "mailto:"].includes(protocol) ? address : undefined;
}
