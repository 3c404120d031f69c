import { Bell, BellOff, BellRing } from "lucide-react";
import { IconButton } from "../components/button.tsx";
import { useNotificationPermission } from "./notifications.ts";

/** A button that asks for the permission to notify of approvals, and shows what was chosen. */
export function NotificationButton() {
  const [permission, ask] = useNotificationPermission();
  switch (permission) {
    case "unsupported":
      return null;
    case "default":
      return (
        <IconButton label="Notify me of approvals" onClick={ask}>
          <Bell size={18} />
        </IconButton>
      );
    case "granted":
      return (
        <IconButton label="Approvals are notified; the browser's settings change it" disabled>
          <BellRing size={18} />
        </IconButton>
      );
    case "denied":
      return (
        <IconButton label="Notifications are blocked; the browser's settings change it" disabled>
          <BellOff size={18} />
        </IconButton>
      );
  }
}
