import { Anchor, Badge, Text } from "@mantine/core";
import type { FileUIPart } from "ai";
import { isOwnFile, isOwnPicture } from "../markdown/own-files.ts";
import { FileIcon } from "../shown/icons.tsx";
import { visibleName } from "../shown/visible-text.ts";

/** A file of a message: a picture is shown, anything else can be saved; nothing comes from afar. */
export function FilePart({ part }: { readonly part: FileUIPart }) {
  const name = visibleName(part.filename ?? `File of type ${part.mediaType}`);
  if (part.mediaType.startsWith("image/") && isOwnPicture(part.url)) {
    return (
      <img
        className="picture"
        src={part.url}
        alt={part.filename === undefined ? "Image from the agent" : name}
      />
    );
  }
  const canBeSaved = isOwnFile(part.url) || part.url.startsWith("data:");
  if (!canBeSaved) return <Text size="sm">{name} (kept elsewhere, not loaded)</Text>;
  return (
    <Anchor href={part.url} download={part.filename ?? true}>
      <Badge size="lg" leftSection={<FileIcon size={14} />} maw="100%">
        {name}
      </Badge>
    </Anchor>
  );
}
