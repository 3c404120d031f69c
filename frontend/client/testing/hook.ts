import { act, type RenderHookResult, renderHook, waitFor } from "@testing-library/react";
import * as ai from "ai";
import { StrictMode } from "react";
import type { Major } from "../src/installed-major.ts";
import type { MessagePart } from "../src/message-parts.ts";
import { type SluiceChat, type SluiceChatOptions, useSluiceChat } from "../src/react/index.ts";
import type { ScriptedServer } from "../src/testing/scripted-server.ts";

// Set by the projects of vitest.config.ts, which resolve `ai` to one version each.
export const MAJOR: Major = process.env.AI_SDK_MAJOR === "7" ? 7 : 6;

/** A rendered `useSluiceChat`, in strict mode, which runs every effect twice. */
export class Page {
  readonly rendered: RenderHookResult<SluiceChat, Partial<SluiceChatOptions>>;

  constructor(server: ScriptedServer, options: Partial<SluiceChatOptions> = {}) {
    const { fetch } = server;
    const defaults = { ai, id: "chat", fetch, apiUrl: "http://page/api" };
    this.rendered = renderHook(
      (changed: Partial<SluiceChatOptions>) =>
        useSluiceChat({ ...defaults, ...options, ...changed } as SluiceChatOptions),
      { wrapper: StrictMode, initialProps: {} },
    );
  }

  get chat(): SluiceChat {
    return this.rendered.result.current;
  }

  get parts(): MessagePart[] {
    return this.chat.messages.flatMap((message) => message.parts as MessagePart[]);
  }

  /** The states of the tool calls, in order. */
  get states(): (string | undefined)[] {
    return this.parts.filter((part) => part.toolCallId !== undefined).map((part) => part.state);
  }

  /** The text of all assistant messages. */
  get text(): string {
    return this.chat.messages
      .filter(({ role }) => role === "assistant")
      .flatMap(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : "")))
      .join("");
  }

  async act(action: (chat: SluiceChat) => unknown): Promise<void> {
    await act(async () => void (await action(this.chat)));
  }

  /** Wait until the assertions of the callback hold. */
  async waitFor(assertions: (page: Page) => void): Promise<void> {
    await waitFor(() => assertions(this));
  }

  async waitForStatus(status: "ready" | "error" = "ready"): Promise<void> {
    await waitFor(() => {
      if (this.chat.status !== status) throw new Error(`the chat is ${this.chat.status}`);
    });
  }
}
