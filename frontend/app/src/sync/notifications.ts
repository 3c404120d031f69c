import { useCallback, useState } from "react";
import type { UserEvent } from "sluicegate/events";

type Permission = NotificationPermission | "unsupported";

function currentPermission(): Permission {
  return "Notification" in window ? Notification.permission : "unsupported";
}

/** The permission to show desktop notifications, and a function that asks for it. */
export function useNotificationPermission(): readonly [Permission, () => void] {
  const [permission, setPermission] = useState(currentPermission);
  const ask = useCallback(() => {
    void Notification.requestPermission().then(setPermission);
  }, []);
  return [permission, ask];
}

/** Notify of a requested approval while the page is not visible; the text has no arguments. */
export function notifyOfApproval(event: UserEvent, openChat: (chat: string) => void): void {
  if (event.type !== "approval" || event.state !== "requested") return;
  if (document.visibilityState === "visible" || currentPermission() !== "granted") return;
  // Several tabs show one notification, since it has the same tag.
  const notification = new Notification("An approval waits for you", {
    body: `A tool asks: ${event.tool}`,
    tag: event.approvalId,
  });
  notification.onclick = () => {
    window.focus();
    openChat(event.chatId);
    notification.close();
  };
}
