import { type ComponentProps, useEffect } from "react";
import { Button } from "./button.tsx";
import { useReflexGuard, watchPointer } from "./reflex-guard.ts";

type GuardedButtonProps = Omit<ComponentProps<typeof Button>, "disabled" | "onClick"> & {
  /** Whether something has to be done before; the button stays in the tab order. */
  readonly isLocked?: boolean;
  readonly onAccept: () => void;
};

/** A button for an action that cannot be undone: it ignores presses meant for something else. */
export function GuardedButton({ isLocked = false, onAccept, ...rest }: GuardedButtonProps) {
  const { isArriving, isReflex, handlers } = useReflexGuard();
  useEffect(watchPointer, []);
  const isDisabled = isLocked || isArriving;
  return (
    <Button
      {...rest}
      {...handlers}
      {...(isDisabled && { "aria-disabled": true })}
      onClick={(event) => {
        if (!isDisabled && !isReflex(event)) onAccept();
      }}
    />
  );
}
