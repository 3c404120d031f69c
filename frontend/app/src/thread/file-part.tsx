import type { FileUIPart } from "ai";
import { FileText } from "lucide-react";
import { isSafeImage, isServerFile } from "../safe-urls.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";

/** A file of a message: images are shown, other files are links; no other host is contacted. */
export function FilePart({ part }: { readonly part: FileUIPart }) {
  const name = visibleName(part.filename ?? `File of type ${part.mediaType}`);
  if (part.mediaType.startsWith("image/") && isSafeImage(part.url)) {
    const alt = part.filename === undefined ? "Image from the agent" : name;
    const image = <img className="image" src={part.url} alt={alt} />;
    // Browsers do not open other URLs, such as those of data, in a new tab.
    if (!isServerFile(part.url)) return image;
    return (
      <a
        className="image-link"
        href={part.url}
        target="_blank"
        rel="noopener noreferrer"
        title="Open the image in a new tab"
      >
        {image}
      </a>
    );
  }
  const isDownloadable = isServerFile(part.url) || part.url.startsWith("data:");
  if (!isDownloadable) return <p className="text-sm">{name} (stored elsewhere, not loaded)</p>;
  return (
    <a className="file" href={part.url} download={part.filename ?? true}>
      <FileText size={16} />
      {name}
    </a>
  );
}
