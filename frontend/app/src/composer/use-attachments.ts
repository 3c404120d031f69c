import { useCallback, useEffect, useRef, useState } from "react";
import { createId } from "../random-id.ts";

/** A file of the message that is being written. */
export interface Attachment {
  readonly id: string;
  readonly file: File;
  /** The URL of an image, for its thumbnail. */
  readonly preview: string | undefined;
}

function toAttachment(file: File): Attachment {
  const preview = file.type.startsWith("image/") ? URL.createObjectURL(file) : undefined;
  return { id: createId(), file, preview };
}

function release(attachments: readonly Attachment[]): void {
  for (const { preview } of attachments) if (preview !== undefined) URL.revokeObjectURL(preview);
}

/** The files of the message that is being written. */
export function useAttachments() {
  const [attachments, setAttachments] = useState<readonly Attachment[]>([]);
  const add = useCallback((files: Iterable<File>) => {
    const added = Array.from(files, toAttachment);
    setAttachments((before) => [...before, ...added]);
  }, []);
  const remove = useCallback((removed: readonly Attachment[]) => {
    setAttachments((before) => before.filter((attachment) => !removed.includes(attachment)));
  }, []);
  // The thumbnails are released after they are no longer rendered.
  const rendered = useRef(attachments);
  useEffect(() => {
    release(rendered.current.filter((attachment) => !attachments.includes(attachment)));
    rendered.current = attachments;
  }, [attachments]);
  useEffect(() => () => release(rendered.current), []);
  return { attachments, add, remove };
}
