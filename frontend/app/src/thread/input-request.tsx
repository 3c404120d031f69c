import { useCallback, useState } from "react";
import { useChatContext } from "../chat/chat-context.ts";
import { Button } from "../components/button.tsx";
import { FieldTable } from "../components/field-table.tsx";
import { TextArea } from "../components/text-area.tsx";
import { VisibleText } from "../components/visible-text.tsx";
import { visibleName } from "../text-checks/hidden-characters.ts";
import { consentUrl, useConsentResponse } from "./oauth-consent.ts";
import { CREDENTIAL_REQUEST, INPUT_REQUEST, type ToolPart, toolName } from "./tool-part.ts";

function titleOf(part: ToolPart): string {
  const name = toolName(part);
  if (name === CREDENTIAL_REQUEST) return "The agent needs your consent at another site";
  return name === INPUT_REQUEST ? "The agent asks you" : (part.title ?? name);
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
