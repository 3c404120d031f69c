// The protocol by hand: server-sent events in, the parts of one assistant message out.

/** Yield the chunks of a response as they arrive; comments and the terminator are skipped. */
export async function* chunksOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (waiting + value).split("\n\n");
    waiting = events.pop();
    for (const event of events) {
      if (event.startsWith("data: ") && event !== "data: [DONE]") yield JSON.parse(event.slice(6));
    }
  }
}

/** Tool parts that wait for this page: for a decision, or for the output of a browser's tool. */
export function waitingParts(message) {
  return message.parts.filter(
    ({ toolCallId, state, providerExecuted }) =>
      toolCallId !== undefined &&
      (state === "approval-requested" || (state === "input-available" && !providerExecuted)),
  );
}

const states = {
  "tool-input-start": "input-streaming",
  "tool-input-available": "input-available",
  "tool-input-error": "output-error",
  "tool-approval-response": "approval-responded",
  "tool-output-available": "output-available",
  "tool-output-error": "output-error",
  "tool-output-denied": "output-denied",
};

function feedTool(parts, chunk) {
  let part = parts.findLast(({ toolCallId, approval }) =>
    chunk.toolCallId ? toolCallId === chunk.toolCallId : approval?.id === chunk.approvalId,
  );
  if (!part) {
    const { dynamic, toolName, toolCallId } = chunk;
    part = { type: dynamic ? "dynamic-tool" : `tool-${toolName}`, toolName, toolCallId };
    parts.push(part);
  }
  for (const field of ["title", "providerExecuted", "input", "output", "errorText"]) {
    if (chunk[field] !== undefined) part[field] = chunk[field];
  }
  part.state = states[chunk.type] ?? part.state;
  if (chunk.type === "tool-approval-request") {
    part.approval = { id: chunk.approvalId, requestReason: chunk.reason };
    if (!chunk.isAutomatic) part.state = "approval-requested";
  } else if (chunk.type === "tool-approval-response") {
    Object.assign(part.approval, { approved: chunk.approved, reason: chunk.reason });
  }
}

/** Change the message as the chunk says; an error chunk throws its sentence. */
export function feed(message, chunk, open) {
  const { parts } = message;
  const [kind, moment] = chunk.type.split("-");
  if (chunk.type === "error") throw new Error(chunk.errorText);
  if (chunk.type === "start") message.id = chunk.messageId ?? message.id;
  else if (chunk.type === "start-step") parts.push({ type: "step-start" });
  else if (chunk.type === "reset-step") {
    parts.length = parts.findLastIndex(({ type }) => type === "step-start") + 1;
  } else if (kind === "tool") feedTool(parts, chunk);
  else if (kind === "file" || kind === "source") parts.push(chunk);
  else if ((kind === "text" || kind === "reasoning") && moment === "start") {
    open.set(kind + chunk.id, parts[parts.push({ type: kind, text: "", state: "streaming" }) - 1]);
  } else if (moment === "delta") open.get(kind + chunk.id).text += chunk.delta;
  else if (moment === "end") open.get(kind + chunk.id).state = "done";
}
