/** The path of the chat page, which ends with a slash. */
export function rootPath(): string {
  const root = document.querySelector<HTMLMetaElement>("meta[name=sluicegate-root]")?.content;
  return new URL(root || "./", document.baseURI).pathname;
}

/** The path of a page of the approvals, or of one of them. */
export function inboxPath(approvalId?: string): string {
  const base = `${rootPath()}inbox`;
  return approvalId === undefined ? base : `${base}/${encodeURIComponent(approvalId)}`;
}

/** Whether the page shows the approvals of all chats. */
export function isInbox(): boolean {
  const { pathname } = location;
  return pathname === inboxPath() || pathname.startsWith(`${inboxPath()}/`);
}
