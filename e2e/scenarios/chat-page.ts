import { expect, type Locator, type Page } from "@playwright/test";
import type { DemoServer } from "./demo-server.ts";

export type Transport = "sse" | "websocket" | "bidi";
export type Release = "deferred" | "preview" | "progressive";

/** The page as a person uses it: by what is written on it. */
export class ChatPage {
  readonly log: Locator;
  readonly message: Locator;

  constructor(
    readonly page: Page,
    readonly server: DemoServer,
  ) {
    this.log = page.getByRole("log", { name: "Conversation" });
    this.message = page.getByRole("textbox", { name: "Message", exact: true });
  }

  /** Opens a new chat, or the one that an address names. */
  async open(choices: { transport?: Transport; release?: Release } = {}, chat = ""): Promise<this> {
    await this.page.addInitScript((chosen) => {
      for (const [name, value] of Object.entries(chosen)) {
        localStorage.setItem(`sluicegate.${name}`, value);
      }
    }, choices);
    await this.page.goto(`${this.server.url}/${chat}`);
    await expect(this.message).toBeVisible();
    return this;
  }

  /** What names the open chat in its address. */
  get chat(): string {
    return new URL(this.page.url()).search;
  }

  async say(text: string): Promise<void> {
    await this.message.fill(text);
    await this.message.press("Enter");
    await expect(this.message).toHaveValue("");
  }

  /** What went wrong with the open chat, in words. */
  get alert(): Locator {
    return this.page.getByRole("main").getByRole("alert");
  }

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
    await card.getByRole("textbox", { name: "Reason for denying (optional)" }).fill(reason);
    await card.getByRole("button", { name: "Deny" }).click();
  }

  /** Waits for the end of the answer: nothing comes any more and nobody is asked. */
  async finished(): Promise<void> {
    await expect(this.answer.getByRole("button", { name: "Answer again" })).toBeVisible();
  }
}
