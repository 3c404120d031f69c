import { Anchor, Badge, Text } from "@mantine/core";
import type { FileUIPart } from "ai";
import { FileIcon } from "../components/icons.tsx";
import { visibleName } from "../components/visible-text.ts";
import { isSafeImage, isServerFile } from "../markdown/safe-urls.ts";

/** A file of a message: images are shown, other files are links; no other host is contacted. */
export function FilePart({ part }: { readonly part: FileUIPart }) {
  const name = visibleName(part.filename ?? `File of type ${part.mediaType}`);
  if (part.mediaType.startsWith("image/") && isSafeImage(part.url)) {
    return (
      <img
        className="image"
        src={part.url}
        alt={part.filename === undefined ? "Image from the agent" : name}
      />
    );
  }
  const isDownloadable = isServerFile(part.url) || part.url.startsWith("data:");
  if (!isDownloadable) return <Text size="sm">{name} (stored elsewhere, not loaded)</Text>;
  return (
    <Anchor href={part.url} download={part.filename ?? true}>
      <Badge size="lg" leftSection={<FileIcon size={14} />} maw="100%">
        {name}
      </Badge>
    </Anchor>
  );
}
