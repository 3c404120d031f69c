import { useEffect } from "react";
import { isRecord } from "../is-record.ts";
import { safeLink } from "../safe-urls.ts";
import type { ToolPart } from "./tool-part.ts";

/** The authorization URL of a credential request, if it is safe to link to. */
export function consentUrl(part: ToolPart): string | undefined {
  const hasUrl = isRecord(part.input) && typeof part.input.authUri === "string";
  return hasUrl ? safeLink(String((part.input as { authUri: unknown }).authUri)) : undefined;
}

/** The channel on which the server's redirect page posts its URL. */
const CHANNEL = "sluicegate-oauth";

function stateOf(url: unknown): string | null {
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  return new URL(url).searchParams.get("state");
}

/** Call a listener with the redirect URL after the person has consented at the provider. */
export function useConsentResponse(
  authorizationUrl: string | undefined,
  onResponse: (url: string) => void,
): void {
  useEffect(() => {
    const state = stateOf(authorizationUrl);
    if (state === null) return;
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = ({ data }) => {
      // Every page of this origin receives the message; the state identifies the request.
      if (isRecord(data) && data.type === CHANNEL && stateOf(data.url) === state) {
        onResponse(String(data.url));
      }
    };
    return () => channel.close();
  }, [authorizationUrl, onResponse]);
}
