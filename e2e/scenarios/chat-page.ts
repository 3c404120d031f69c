import { expect, type Locator, type Page } from "@playwright/test";
import type { DemoServer } from "./demo-server.ts";

export type Transport = "sse" | "websocket" | "bidi";
export type Release = "deferred" | "preview" | "progressive";

/** A page object that locates elements by role and visible text. */
export class ChatPage {
  readonly log: Locator;
  readonly message: Locator;

  constructor(
    readonly page: Page,
    readonly server: DemoServer,
    /** The URL of the page, if it is not that of the server. */
    readonly url: string = server.url,
  ) {
    this.log = page.getByRole("log", { name: "Conversation" });
    this.message = page.getByRole("textbox", { name: "Message", exact: true });
  }

  /** Open a new chat, or the chat of a URL query. */
  async open(
    preferences: { transport?: Transport; release?: Release } = {},
    chat = "",
  ): Promise<this> {
    await this.page.addInitScript((stored) => {
      for (const [name, value] of Object.entries(stored)) {
        localStorage.setItem(`sluicegate.${name}`, value);
      }
    }, preferences);
    await this.page.goto(`${this.url}/${chat}`);
    await expect(this.message).toBeVisible();
    return this;
  }

  /** The URL query with the id of the open chat. */
  get query(): string {
    return new URL(this.page.url()).search;
  }

  async send(text: string): Promise<void> {
    await this.message.fill(text);
    // While the page receives an answer, the message would wait for its end.
    await expect(this.page.getByRole("button", { name: "Send", exact: true })).toBeVisible();
    await this.message.press("Enter");
    await expect(this.message).toHaveValue("");
  }

  /** The error message of the open chat. */
  get alert(): Locator {
    return this.page.getByRole("main").getByRole("alert");
  }

  /** The last assistant message. */
  get answer(): Locator {
    return this.log.getByRole("article", { name: "Assistant" }).last();
  }

  card(title: string): Locator {
    return this.log.getByRole("region", { name: `Approval: ${title}` });
  }

  get cards(): Locator {
    return this.log.getByRole("region", { name: /^Approval: / });
  }

  tool(title: string): Locator {
    return this.log.getByRole("region", { name: `Tool: ${title}` });
  }

  async approve(title: string): Promise<void> {
    await this.card(title).getByRole("button", { name: "Approve", exact: true }).click();
  }

  async deny(title: string, reason = ""): Promise<void> {
    const card = this.card(title);
    await card.getByRole("button", { name: "Deny" }).click();
    const form = card.getByRole("group", { name: "Deny the call" });
    await form.getByRole("textbox", { name: "Reason for denying (optional)" }).fill(reason);
    await form.getByRole("button", { name: "Deny" }).click();
  }

  /** Wait for the end of the answer, without pending approvals. */
  async waitForEnd(): Promise<void> {
    await expect(this.answer.getByRole("button", { name: "Answer again" })).toBeVisible();
  }
}
