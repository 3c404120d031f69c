/** Whether a URL is a stored file of this server; the page loads no other files. */
export function isServerFile(url: string, page: string = location.href): boolean {
  if (!URL.canParse(url, page)) return false;
  const { origin, pathname, protocol } = new URL(url, page);
  return (
    protocol.startsWith("http") &&
    origin === new URL(page).origin &&
    /\/chats\/[^/]+\/files\/[^/]+$/.test(pathname)
  );
}

/** Whether a URL is an image that can be shown without a request to another host. */
export function isSafeImage(url: string): boolean {
  return isServerFile(url) || /^data:image\/(?:png|jpeg|gif|webp|avif);base64,/i.test(url);
}

/** The URL if it is safe to link to; undefined for schemes that execute code. */
export function safeLink(url: string | undefined): string | undefined {
  if (!url || !URL.canParse(url, location.href)) return undefined;
  const { protocol } = new URL(url, location.href);
  return ["http:", "https:", "mailto:"].includes(protocol) ? url : undefined;
}
