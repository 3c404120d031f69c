import { useCallback, useEffect, useState } from "react";
import { isRecord } from "../approvals/approval-requests.ts";
import { useChatContext } from "../chat/chat-context.ts";
import { Button } from "../components/button.tsx";
import { TextArea } from "../components/text-area.tsx";
import { FieldTable, VisibleText } from "../components/values.tsx";
import { safeLink } from "../markdown/safe-urls.ts";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { CREDENTIAL_REQUEST, INPUT_REQUEST, type ToolPart, toolName } from "./tool-part.ts";

/** The authorization URL of a credential request, if it is safe to link to. */
function consentUrl(part: ToolPart): string | undefined {
  const hasUrl = isRecord(part.input) && typeof part.input.authUri === "string";
  return hasUrl ? safeLink(String((part.input as { authUri: unknown }).authUri)) : undefined;
}

function titleOf(part: ToolPart): string {
  const name = toolName(part);
  if (name === CREDENTIAL_REQUEST) return "The agent needs your consent at another site";
  return name === INPUT_REQUEST ? "The agent asks you" : (part.title ?? name);
}

/** The channel on which the server's redirect page posts its URL. */
const CHANNEL = "sluicegate-oauth";

function stateOf(url: unknown): string | null {
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  return new URL(url).searchParams.get("state");
}

/** Call a listener with the redirect URL after the person has consented at the provider. */
function useConsentResponse(
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

/** A form for a client-side call that the person fulfils: an input or a credential request. */
export function InputRequest({ part }: { readonly part: ToolPart }) {
  const { addOutput } = useChatContext();
  const [text, setText] = useState("");
  const isConsent = toolName(part) === CREDENTIAL_REQUEST;
  const url = consentUrl(part);
  const title = titleOf(part);
  const onConsent = useCallback(
    (url: string) => addOutput(part, { authResponseUri: url }),
    [addOutput, part],
  );
  useConsentResponse(isConsent ? url : undefined, onConsent);
  const submit = () =>
    addOutput(part, isConsent ? { authResponseUri: text.trim() } : { result: text });
  return (
    <section className="panel stack" aria-label={`Question: ${visibleName(title)}`}>
      <p className="strong">
        <VisibleText text={title} />
      </p>
      {url === undefined ? (
        <FieldTable value={part.input} label="Question" />
      ) : (
        <a href={url} target="_blank" rel="noopener noreferrer" className="literal">
          {url}
        </a>
      )}
      <TextArea
        label={isConsent ? "The address you were sent to afterwards" : "Your answer"}
        value={text}
        onChange={setText}
      />
      <div className="row">
        <Button variant="primary" disabled={text.trim() === ""} onClick={submit}>
          Answer
        </Button>
        <Button onClick={() => addOutput(part, new Error("The user did not want to answer."))}>
          Refuse
        </Button>
      </div>
    </section>
  );
}
