import { useEffect } from "react";
import { isRecord } from "../approvals/request.ts";

/** The channel on which the server's page for people who come back tells where they came. */
const CHANNEL = "sluicegate-oauth";

function stateOf(address: unknown): string | null {
  if (typeof address !== "string" || !URL.canParse(address)) return null;
  return new URL(address).searchParams.get("state");
}

/** Waits for the person to come back from the provider at an address, with what it gave along. */
export function useConsent(address: string | undefined, come: (url: string) => void): void {
  useEffect(() => {
    const state = stateOf(address);
    if (state === null) return;
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = ({ data }) => {
      // Every page of this host hears it; the state tells whose consent it is.
      if (isRecord(data) && data.type === CHANNEL && stateOf(data.url) === state) {
        come(String(data.url));
      }
    };
    return () => channel.close();
  }, [address, come]);
}
