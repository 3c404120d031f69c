import { type KeyboardEvent, use } from "react";
import { hasFocusJustMoved, ReflexDelay } from "../components/reflex-guard.ts";
import { useStoredText } from "../use-stored-text.ts";

/** The letters that press a button of a card, by the `data-key` of the button. */
export type CardKey = "a" | "d" | "e";

/** Whether letters decide in a card, and a function that switches them on or off (WCAG 2.1.4). */
export function useCardShortcuts(): readonly [isOn: boolean, setOn: (isOn: boolean) => void] {
  const [stored, setStored] = useStoredText("sluicegate.card-keys", "on");
  return [stored !== "off", (isOn) => setStored(isOn ? "on" : "off")];
}

function isField(target: EventTarget): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select");
}

/** A handler for the letters of a card. It never acts in a field, and never on a repeated key. */
export function useCardShortcutHandler(isOn: boolean): (event: KeyboardEvent<HTMLElement>) => void {
  const delay = use(ReflexDelay);
  return (event) => {
    // A repeated key was pressed for the element that had the focus before.
    if (event.repeat && (event.key === "Enter" || event.key === " ")) event.preventDefault();
    const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
    if (!isOn || event.repeat || hasModifier || isField(event.target)) return;
    if (hasFocusJustMoved(delay)) return;
    const key = event.key.toLowerCase();
    if (!["a", "d", "e"].includes(key)) return;
    const button = event.currentTarget.querySelector<HTMLElement>(`[data-key="${key}"]`);
    if (button === null) return;
    event.preventDefault();
    button.click();
  };
}
