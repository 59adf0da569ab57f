/** The chat in a tab of a browser, as its person uses it. */
import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";

/** A tab of a separate user that shares nothing with other tabs. */
export class ChatTab {
  readonly page: Page;
  readonly errors: string[] = [];
  /** Held messages of the server; `null` while they are forwarded. */
  #held: (() => void)[] | null = null;

  private constructor(page: Page) {
    this.page = page;
    page.on("pageerror", (error) => this.errors.push(error.message));
  }

  static async open(browser: Browser, { url, name }: { url: string; name: string }): Promise<ChatTab> {
    const context = await browser.newContext();
    const tab = new ChatTab(await context.newPage());
    await tab.page.routeWebSocket(/\/api\/sync$/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((message) => {
        if (tab.#held === null) socket.send(message);
        else tab.#held.push(() => socket.send(message));
      });
    });
    await tab.page.goto(url);
    await tab.page.getByLabel("Your name").fill(name);
    return tab;
  }

  /** Holds the server's later messages. */
  holdAnswers(): void {
    this.#held ??= [];
  }

  /** Forwards the held messages of the server, and later ones. */
  passAnswers(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const pass of held) pass();
  }

  async signUp(email: string, password: string): Promise<void> {
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.getByRole("button", { name: "I have no account yet" }).click();
    await this.page.getByLabel("Email address").fill(email);
    await this.page.getByLabel("Password").fill(password);
    await this.page.getByRole("button", { name: "Create account" }).click();
    await this.page.getByText("Signed in", { exact: true }).waitFor();
  }

  async say(text: string): Promise<void> {
    const box = this.page.getByRole("textbox", { name: "Message" });
    await box.fill(text);
    await box.press("Enter");
  }

  /** Sends many messages, faster than a user types. */
  async saysAll(texts: readonly string[]): Promise<void> {
    await this.page.evaluate(async (texts) => {
      const { hash } = (globalThis as unknown as { location: Location }).location;
      for (const body of texts) {
        const args = { channel: hash.slice(1), name: "Linus", body };
        await fetch("/api/mutation", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ path: "messages:send", args }),
        });
      }
    }, texts);
  }

  /** Waits until a message of a user is displayed and acknowledged. */
  async sees(name: string, text: string): Promise<void> {
    const message = this.page.locator(".message:not(.pending)").filter({ hasText: text });
    await message.waitFor();
    assert.equal(await message.locator(".name").textContent(), name);
  }

  async connection(text: string): Promise<void> {
    await this.page.getByRole("status").filter({ hasText: text }).waitFor();
  }

  async bodies(): Promise<string[]> {
    return await this.page.locator(".message-body").allTextContents();
  }
}
