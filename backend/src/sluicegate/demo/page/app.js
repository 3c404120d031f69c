// The chat page: what the message holds is drawn, what the person decides is sent.
import { chunksOf, feed, waitingParts } from "./stream.js";

const api = document.querySelector("meta[name=sluicegate-api]").content;
const byId = (id) => document.getElementById(id);
const [log, text, status, error] = ["log", "text", "status", "error"].map(byId);
const headers = { "content-type": "application/json", "x-ai-sdk": "7", "x-release": "preview" };

// Not randomUUID: browsers have it over HTTPS and on this machine only.
const newId = () => crypto.getRandomValues(new Uint32Array(4)).join("-");
const known = location.hash.slice("#chat=".length);
const chat = known || newId();
history.replaceState(null, "", `#chat=${chat}`);
let messages = [];
let running = false;

// Everything is set as text; nothing a model or a tool says becomes markup.
function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}
const button = (words, onclick) => element("button", { type: "button", onclick }, words);
const json = (value) => element("pre", {}, JSON.stringify(value, null, 2));
const words = {
  "input-streaming": "is being prepared",
  "input-available": "running",
  "approval-responded": "answered",
  "output-available": "done",
  "output-error": "failed",
  "output-denied": "denied",
};

function drawTool(part) {
  const name = part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
  const waits = !running && waitingParts({ parts: [part] }).length > 0;
  const said = waits ? "waits for you" : (words[part.state] ?? "asks");
  const state = element("span", { className: "state" }, said);
  const card = element("section", { className: `tool ${part.state}`, ariaLabel: `Tool ${name}` });
  card.append(element("h3", { title: name }, part.title ?? name, " ", state));
  if (part.input !== undefined) card.append(json(part.input));
  if (part.approval?.requestReason) card.append(element("p", {}, part.approval.requestReason));
  if (part.approval?.reason) card.append(element("p", {}, `Reason: ${part.approval.reason}`));
  if (part.state === "output-available") {
    card.append(element("details", {}, element("summary", {}, "Result"), json(part.output)));
  }
  if (part.errorText) card.append(element("p", { className: "problem" }, part.errorText));
  if (waits) card.append(part.state === "approval-requested" ? approval(part) : browserTool(part));
  return card;
}

function approval(part) {
  const said = "Reason (optional)";
  const why = element("input", { maxLength: 2000, placeholder: said, ariaLabel: said });
  const decide = (approved) => () => {
    const approval = { id: part.approval.id, approved, reason: why.value.trim() || undefined };
    answer(part, { state: "approval-responded", approval });
  };
  const choices = [button("Approve", decide(true)), button("Deny", decide(false))];
  return element("div", { className: "choices" }, why, ...choices);
}

function browserTool(part) {
  const asksPlace = part.type === "tool-get_location";
  const value = element("input", { ariaLabel: "Answer", hidden: asksPlace });
  const refuse = (errorText) => answer(part, { state: "output-error", errorText });
  const give = (output) => answer(part, { state: "output-available", output });
  const say = () => {
    if (!asksPlace) return give({ result: value.value });
    return navigator.geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude } }) => give({ latitude, longitude }),
      () => refuse("The browser did not tell where it is."),
    );
  };
  const no = button("Refuse", () => refuse("The user did not want to answer."));
  return element("div", { className: "choices" }, value, button("Answer", say), no);
}

function drawPart(part) {
  switch (part.type) {
    case "text":
      return element("p", { className: "text" }, part.text);
    case "reasoning": {
      const heading = element("summary", {}, "Thoughts");
      const look = { className: "reasoning", open: part.state === "streaming" };
      return element("details", look, heading, part.text);
    }
    case "file":
      if (part.mediaType.startsWith("image/")) {
        return element("img", { src: part.url, alt: part.filename ?? "Image" });
      }
      return element("a", { href: part.url, download: "" }, part.filename ?? "File");
    case "source-url":
    case "source-document": {
      const link = element("a", { rel: "noreferrer", target: "_blank" }, part.title ?? part.url);
      if (/^https?:/.test(part.url ?? "")) link.href = part.url;
      return element("p", {}, "Source: ", link);
    }
    default:
      return part.toolCallId === undefined ? "" : drawTool(part);
  }
}

const nodes = new WeakMap();
function drawMessage(message) {
  const ariaLabel = message.role === "user" ? "You" : "Assistant";
  const node = element("article", { className: message.role, ariaLabel });
  node.append(...message.parts.map(drawPart));
  nodes.get(message)?.replaceWith(node);
  if (!node.isConnected) log.append(node);
  nodes.set(message, node);
}

function drawAll() {
  log.replaceChildren();
  messages.forEach(drawMessage);
  const waits = !running && waitingParts(messages.at(-1) ?? { parts: [] }).length > 0;
  status.textContent = running ? "Answering …" : waits ? "Waiting for your answer." : "";
  byId("stop").hidden = !running;
  byId("send").disabled = running;
  byId("suggestions").hidden = messages.length > 0;
}

let due = false;
function drawSoon(message) {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    if (messages.includes(message)) drawMessage(message);
    window.scrollTo(0, document.body.scrollHeight);
  });
}

function showError(said) {
  Object.assign(error, { textContent: said, hidden: !said });
}

const call = (path, options = {}) => fetch(`${api}/${path}`, { headers, ...options });

async function read(response, message) {
  const open = new Map();
  for await (const chunk of chunksOf(response)) {
    feed(message, chunk, open);
    if (chunk.type === "data-progress") {
      status.textContent = `${chunk.data.toolName ?? "A tool"}: ${chunk.data.state}`;
    }
    drawSoon(message);
  }
}

async function turn(work) {
  running = true;
  showError("");
  drawAll();
  try {
    await work();
  } catch (problem) {
    showError(problem.message);
  }
  running = false;
  drawAll();
  // Not on a button: a key that was meant for the message must not approve anything.
  (log.querySelector(".choices input:not([hidden])") ?? text).focus();
}

const post = (message) =>
  turn(async () => {
    const body = JSON.stringify({ id: chat, message });
    const response = await call("chat", { method: "POST", body });
    if (!response.ok) {
      if (response.status === 404 || response.status === 409) await load();
      throw new Error(await response.text());
    }
    if (messages.at(-1).role === "user") messages.push({ role: "assistant", parts: [] });
    await read(response, messages.at(-1));
  });

function answer(part, fields) {
  Object.assign(part, fields);
  drawAll();
  if (!running && waitingParts(messages.at(-1)).length === 0) void post(messages.at(-1));
}

function send(said) {
  const message = { id: newId(), role: "user", parts: [{ type: "text", text: said }] };
  messages.push(message);
  void post(message);
}

async function load() {
  const response = await call(`chats/${chat}`);
  messages = response.ok ? (await response.json()).messages : [];
  if (!response.ok && response.status !== 404) throw new Error(await response.text());
}

const resume = () =>
  turn(async () => {
    await load();
    const response = await call(`chat/${chat}/stream`);
    if (response.status !== 200) return;
    // The stream tells the whole message again.
    if (messages.at(-1)?.role === "assistant") messages.pop();
    messages.push({ role: "assistant", parts: [] });
    drawAll();
    await read(response, messages.at(-1));
  });

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const said = text.value.trim();
  if (!said || running) return;
  text.value = "";
  send(said);
});
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("composer").requestSubmit();
});
byId("stop").addEventListener("click", () => call(`chat/${chat}/stop`, { method: "POST" }));
window.addEventListener("hashchange", () => location.reload());

const suggestions = await (await fetch("suggestions.json")).json();
byId("suggestions").append(...suggestions.map((said) => button(said, () => send(said))));
if (known) await resume();
