/** The chat in two real browser tabs against a real server: what is typed in one appears in the other. */
import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { Child } from "../bench/support/child.ts";
import { launchChromium } from "../support/chromium.ts";

const START_MS = 60_000;

interface Server extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  kill(): Promise<void>;
}

async function serveChat(dataDir: string, port = 0): Promise<Server> {
  const child = new Child({
    args: [
      ..."run --quiet --no-prompt -P=serve main.ts".split(" "),
      ...["--functions", "examples/chat/functions", "--static", "examples/chat/public"],
      ...["--data", dataDir, "--port", String(port)],
    ],
  });
  try {
    const [url, listening = ""] = await child.line(/http:\/\/127\.0\.0\.1:(\d+)/, START_MS);
    return {
      url,
      port: Number(listening),
      kill: () => child.kill(),
      [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
    };
  } catch (error) {
    await child.kill();
    throw error;
  }
}

/** A tab of its own person: nothing is shared with other tabs. */
class Tab {
  readonly page: Page;
  readonly errors: string[] = [];

  private constructor(page: Page) {
    this.page = page;
    page.on("pageerror", (error) => this.errors.push(error.message));
  }

  static async open(browser: Browser, { url, name }: { url: string; name: string }): Promise<Tab> {
    const context = await browser.newContext();
    const tab = new Tab(await context.newPage());
    await tab.page.goto(url);
    await tab.page.getByLabel("Your name").fill(name);
    return tab;
  }

  async say(text: string): Promise<void> {
    const box = this.page.getByRole("textbox", { name: "Message" });
    await box.fill(text);
    await box.press("Enter");
  }

  /** Waits until a message of a person is there and no longer on its way. */
  async sees(name: string, text: string): Promise<void> {
    const message = this.page.locator(".message:not(.pending)").filter({ hasText: text });
    await message.waitFor({ timeout: 20_000 });
    assert.equal(await message.locator(".name").textContent(), name);
  }

  async connection(text: string): Promise<void> {
    await this.page.getByRole("status").filter({ hasText: text }).waitFor({ timeout: 20_000 });
  }

  async bodies(): Promise<string[]> {
    return await this.page.locator(".message-body").allTextContents();
  }
}

async function withTabs(
  test: (tabs: { ada: Tab; linus: Tab; server: Server; dataDir: string }) => Promise<void>,
) {
  const dataDir = await Deno.makeTempDir();
  try {
    await using server = await serveChat(dataDir);
    const browser = await launchChromium();
    try {
      const [ada, linus] = await Promise.all(
        ["Ada", "Linus"].map((name) => Tab.open(browser, { url: server.url, name })),
      );
      assert(ada !== undefined && linus !== undefined);
      await test({ ada, linus, server, dataDir });
      assert.deepEqual([...ada.errors, ...linus.errors], []);
    } finally {
      await browser.close();
    }
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
}

Deno.test("two tabs chat: messages, channels and names appear in the other at once", async () => {
  await withTabs(async ({ ada, linus }) => {
    await ada.connection("Live");
    await ada.say("Hello <b>there</b>");
    await linus.sees("Ada", "Hello <b>there</b>");
    await linus.say("Hello Ada");
    await ada.sees("Linus", "Hello Ada");

    const channelName = ada.page.getByLabel("Name of a new channel");
    await channelName.fill("Deep Sea");
    await channelName.press("Enter");
    await ada.page.getByRole("heading", { name: "deep-sea" }).waitFor();
    await ada.say("Only here");
    await ada.sees("Ada", "Only here");
    assert.deepEqual(await linus.bodies(), ["Hello <b>there</b>", "Hello Ada"]);
    await linus.page.getByRole("link", { name: "deep-sea" }).click();
    await linus.sees("Ada", "Only here");
    assert.deepEqual(await linus.bodies(), ["Only here"]);
  });
});

Deno.test("a message without a name is refused with a reason and stays in the box", async () => {
  await withTabs(async ({ ada, linus }) => {
    await ada.page.getByLabel("Your name").fill(" ");
    await ada.say("Who am I");
    await ada.page.getByRole("alert").filter({ hasText: "Tell the others your name first" }).waitFor();
    assert.equal(await ada.page.getByRole("textbox", { name: "Message" }).inputValue(), "Who am I");
    await linus.say("ping");
    await ada.sees("Linus", "ping");
    assert.deepEqual(await ada.bodies(), ["ping"]);
  });
});

Deno.test("a server that is killed and comes back: what was typed meanwhile arrives once", async () => {
  await withTabs(async ({ ada, linus, server, dataDir }) => {
    await ada.say("before");
    await linus.sees("Ada", "before");
    await server.kill();
    await ada.connection("Offline");
    await ada.say("typed offline");
    await ada.page.locator(".message.pending").filter({ hasText: "typed offline" }).waitFor();
    await ada.connection("1 message waits");
    await using _again = await serveChat(dataDir, server.port);
    await linus.sees("Ada", "typed offline");
    await ada.sees("Ada", "typed offline");
    await ada.connection("Live");
    for (const tab of [ada, linus]) assert.deepEqual(await tab.bodies(), ["before", "typed offline"]);
  });
});
