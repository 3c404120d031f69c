/** An event of `GET /events`: a change for the user. Of the contents, it has only titles. */
export type UserEvent =
  /** Nothing is missing: from here on every change is an event. */
  | { readonly type: "ready" }
  /** Events may be missing: load everything again. */
  | { readonly type: "reset" }
  /** What has changed of a chat, or a new one; fields that are left out are as before. */
  | {
      readonly type: "chat";
      readonly chatId: string;
      readonly status?: "ready" | "running" | "waiting";
      readonly title?: string | null;
      readonly updatedAt?: string;
    }
  | { readonly type: "chat.deleted"; readonly chatId: string }
  | {
      readonly type: "approval";
      readonly chatId: string;
      readonly approvalId: string;
      readonly tool: string;
      readonly state: string;
    }
  /** A user's message was stored, or a turn of an assistant's message has ended. */
  | { readonly type: "message"; readonly chatId: string; readonly messageId: string };

/** An event with its id, which is a position among the events of the server. */
export interface IdentifiedEvent {
  readonly id: string;
  readonly event: UserEvent;
}

/** Whether the position `id` is after `other`; any position is after none. */
export function isAfter(id: string, other: string | undefined): boolean {
  if (other === undefined) return true;
  const [time = 0, number = 0] = id.split("-").map(Number);
  const [otherTime = 0, otherNumber = 0] = other.split("-").map(Number);
  return time === otherTime ? number > otherNumber : time > otherTime;
}
