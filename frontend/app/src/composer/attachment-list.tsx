import { FileText, X } from "lucide-react";
import { IconButton } from "../components/button.tsx";
import { visibleName } from "../text-checks/hidden-characters.ts";
import type { Attachment } from "./use-attachments.ts";

interface AttachmentListProps {
  readonly attachments: readonly Attachment[];
  readonly onRemove: (attachment: Attachment) => void;
}

/** The files of the message that is being written, with thumbnails of images. */
export function AttachmentList({ attachments, onRemove }: AttachmentListProps) {
  if (attachments.length === 0) return null;
  return (
    <ul className="attachments plain-list" aria-label="Attached files">
      {attachments.map((attachment) => {
        const name = visibleName(attachment.file.name);
        return (
          <li key={attachment.id} className="attachment">
            {attachment.preview === undefined ? (
              <FileText size={18} />
            ) : (
              <img src={attachment.preview} alt="" />
            )}
            <span className="ellipsis">{name}</span>
            <IconButton label={`Remove ${name}`} size="sm" onClick={() => onRemove(attachment)}>
              <X size={14} />
            </IconButton>
          </li>
        );
      })}
    </ul>
  );
}
