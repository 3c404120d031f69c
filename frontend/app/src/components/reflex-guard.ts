import {
  createContext,
  type PointerEvent,
  use,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";

/** Milliseconds after its arrival for which a button to accept ignores presses. */
export const ReflexDelay = createContext(500);

/** A layout that keeps shifting blocks a pointer for no longer than this, in delays. */
const MAX_SHIFT_DELAYS = 2;
/** Pixels between two taps at one place; a mouse that rests does not move at all. */
const TOUCH_SIZE = 24;

/** The last position to which a pointer was moved or at which it pressed. */
const pointer = { x: Number.NaN, y: Number.NaN, pressedAt: Number.NEGATIVE_INFINITY };
let focusMovedAt = Number.NEGATIVE_INFINITY;

/** Whether a pointer is where it was before, so that the element has come to it. */
function isStill({ clientX, clientY, pointerType }: PointerEvent, delay: number): boolean {
  const isTouch = pointerType === "touch";
  const distance = Math.max(Math.abs(clientX - pointer.x), Math.abs(clientY - pointer.y));
  // A finger is anywhere before it touches; only a second tap at once is a reflex.
  if (isTouch && performance.now() - pointer.pressedAt > delay) return false;
  return distance <= (isTouch ? TOUCH_SIZE : 0);
}

function recordPointer({ clientX, clientY, type }: globalThis.PointerEvent) {
  pointer.x = clientX;
  pointer.y = clientY;
  if (type === "pointerup") pointer.pressedAt = performance.now();
}

/** Record the pointer until the returned function is called. */
export function watchPointer(): () => void {
  // After the handlers of the element itself, which compare it with the position before.
  document.addEventListener("pointermove", recordPointer);
  document.addEventListener("pointerup", recordPointer);
  return () => {
    document.removeEventListener("pointermove", recordPointer);
    document.removeEventListener("pointerup", recordPointer);
  };
}

/** Move the focus to an element; a key that was meant for the element before is then ignored. */
export function moveFocus(element: HTMLElement): void {
  focusMovedAt = performance.now();
  element.focus();
}

/** Whether keys are ignored since the page has just moved the focus. */
export function hasFocusJustMoved(delay: number): boolean {
  return performance.now() - focusMovedAt < delay;
}

const NO_SHIFT = { first: Number.NEGATIVE_INFINITY, last: Number.NEGATIVE_INFINITY };

/** True during the delay after the page became visible with this action of the component. */
function useArrival(delay: number, action: unknown): boolean {
  const [isArriving, setArriving] = useState(delay > 0);
  const [arrived, setArrived] = useState(action);
  if (arrived !== action) {
    setArrived(action);
    setArriving(delay > 0);
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: each action arrives.
  useEffect(() => {
    if (delay === 0) return;
    let timer: ReturnType<typeof setTimeout>;
    const arrive = () => {
      clearTimeout(timer);
      setArriving(true);
      if (document.visibilityState === "visible") {
        timer = setTimeout(() => setArriving(false), delay);
      }
    };
    arrive();
    document.addEventListener("visibilitychange", arrive);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", arrive);
    };
  }, [delay, action]);
  return isArriving;
}

/** The guard of a button that accepts. */
export interface ReflexGuard {
  /** Whether the button has just arrived. */
  readonly isArriving: boolean;
  /** Whether a press is a reflex; `detail` is 0 for the keyboard. */
  readonly isReflex: (event: { readonly detail: number }) => boolean;
  /** The handlers that notice a button which moved under a pointer that did not. */
  readonly handlers: {
    readonly onPointerEnter: (event: PointerEvent) => void;
    readonly onPointerMove: (event: PointerEvent) => void;
  };
}

/**
 * Guards a button against a press that was meant for something else: the button has just arrived,
 * it has just moved under a resting pointer, or the page has just moved the focus. A button arrives
 * anew with each `action` that it stands for.
 */
export function useReflexGuard(action?: unknown): ReflexGuard {
  const delay = use(ReflexDelay);
  const isArriving = useArrival(delay, action);
  const shift = useRef(NO_SHIFT);
  const isReflex = useCallback(
    ({ detail }: { readonly detail: number }) => {
      const now = performance.now();
      const { first, last } = shift.current;
      const hasShifted = now - last < delay && now - first < MAX_SHIFT_DELAYS * delay;
      return isArriving || (detail === 0 ? hasFocusJustMoved(delay) : hasShifted);
    },
    [delay, isArriving],
  );
  const handlers = useMemo(
    () => ({
      onPointerEnter: (event: PointerEvent) => {
        const now = performance.now();
        const { first } = shift.current;
        shift.current = isStill(event, delay)
          ? { first: Number.isFinite(first) ? first : now, last: now }
          : NO_SHIFT;
      },
      onPointerMove: (event: PointerEvent) => {
        if (!isStill(event, delay)) shift.current = NO_SHIFT;
      },
    }),
    [delay],
  );
  return { isArriving, isReflex, handlers };
}
