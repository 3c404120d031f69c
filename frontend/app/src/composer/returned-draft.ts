import { useAui } from "@assistant-ui/react";
import type { UIMessage } from "ai";
import { useEffect } from "react";
import { textOf } from "../chat/message-runtime.ts";

/** Puts the text of a message that the server did not take back where it was written. */
export function useReturnedDraft(unsent: UIMessage | undefined): void {
  const aui = useAui();
  useEffect(() => {
    if (unsent === undefined || aui.composer.getState().text !== "") return;
    aui.composer.setText(textOf(unsent));
  }, [aui, unsent]);
}
