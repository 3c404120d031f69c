import type { UIMessage } from "ai";
import { PlainText } from "../markdown/plain-text.tsx";
import { FilePart } from "./file-part.tsx";

/** The content of a user message: its text, rendered literally, and its files. */
export function UserContent({ message }: { readonly message: UIMessage }) {
  return (
    <div className="bubble stack gap-2">
      {message.parts.map((part, index) => {
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sent message do not move.
        if (part.type === "file") return <FilePart key={index} part={part} />;
        if (part.type !== "text") return null;
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sent message do not move.
        return <PlainText key={index} text={part.text} />;
      })}
    </div>
  );
}
