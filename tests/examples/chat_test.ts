/** The chat in two real browser tabs against a real server: input in one tab appears in the other. */
import assert from "node:assert/strict";
import type { Browser } from "playwright-core";
import { Child } from "../support/processes/child.ts";
import { ChatTab as Tab } from "../support/chat_tab.ts";
import { launchChromium } from "../support/chromium.ts";
import { freePort } from "../support/ports.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { chromium, needs } from "../support/services.ts";

const QUESTIONS_MAX = 5;

interface Server extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  kill(): Promise<void>;
}

async function serveChat(dataDir: string, port: number): Promise<Server> {
  const child = new Child({
    args: [
      ..."run --quiet --no-prompt -P=serve main.ts".split(" "),
      ...["--functions", "examples/chat/functions", "--static", "examples/chat/public"],
      ...["--data", dataDir, "--port", String(port)],
    ],
  });
  try {
    const [url, listening = ""] = await child.line(/http:\/\/127\.0\.0\.1:(\d+)/);
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

interface Place {
  readonly url: string;
  readonly browser: Browser;
}

/** Two people in a channel. */
async function withTabs(
  { url, browser }: Place,
  test: (tabs: { ada: Tab; linus: Tab }) => Promise<void>,
): Promise<void> {
  const [ada, linus] = await Promise.all(["Ada", "Linus"].map((name) => Tab.open(browser, { url, name })));
  assert(ada !== undefined && linus !== undefined);
  await test({ ada, linus });
  assert.deepEqual([...ada.errors, ...linus.errors], []);
  await Promise.all([ada, linus].map((tab) => tab.page.context().close()));
}

async function withServer(
  port: number,
  test: (server: Server, dataDir: string) => Promise<void>,
): Promise<void> {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  await using server = await serveChat(dataDir, port);
  await test(server, dataDir);
}

async function withBrowser(test: (browser: Browser) => Promise<void>): Promise<void> {
  const browser = await launchChromium();
  try {
    await test(browser);
  } finally {
    await browser.close();
  }
}

Deno.test(needs(chromium, "two people chat in a browser"), async (t) => {
  await withServer(0, (server) =>
    withBrowser(async (browser) => {
      let places = 0;
      /** Each step uses a separate channel. */
      const step = (name: string, test: (tabs: { ada: Tab; linus: Tab }) => Promise<void>) =>
        t.step({ name, fn: () => withTabs({ url: `${server.url}#place-${++places}`, browser }, test) });

      await step(
        "two tabs chat: messages, channels and names appear in the other immediately",
        async ({ ada, linus }) => {
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
        },
      );

      await step(
        "one signs up and is marked as such, a guest reads and writes, and a reload keeps the sign-in",
        async ({ ada, linus }) => {
          await ada.page.getByRole("button", { name: "Sign in" }).click();
          await ada.page.getByLabel("Email address").fill("ada@example.com");
          await ada.page.getByLabel("Password").fill("no such account");
          await ada.page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
          await ada.page.getByRole("alert").filter({ hasText: "is wrong" }).waitFor();
          await ada.page.getByRole("button", { name: "Stay a guest" }).click();
          await ada.signUp("ada@example.com", "correct horse");
          await ada.say("Hello from an account");
          await linus.sees("Ada", "Hello from an account");
          assert.equal(await linus.page.locator(".message .member").count(), 1);
          // A guest may use any name, and is still marked as a guest.
          await linus.page.getByLabel("Your name").fill("Ada");
          await linus.say("Hello from a guest");
          await ada.sees("Ada", "Hello from a guest");
          assert.equal(await ada.page.locator(".message .member").count(), 1);
          assert.equal(await ada.page.locator(".message.mine").count(), 1);

          await ada.page.reload();
          await ada.page.getByText("Signed in", { exact: true }).waitFor();
          await ada.say("Still me");
          await linus.sees("Ada", "Still me");
          assert.equal(await linus.page.locator(".message .member").count(), 2);
          await ada.page.getByRole("button", { name: "Sign out" }).click();
          await ada.page.getByLabel("Your name").waitFor();
          await ada.say("Someone else");
          await linus.sees("Ada", "Someone else");
          assert.equal(await linus.page.locator(".message .member").count(), 2);
        },
      );

      await step(
        "others see who is typing until the message is sent or discarded",
        async ({ ada, linus }) => {
          await ada.connection("Live");
          const writing = linus.page.getByText("Ada is writing…");
          const box = ada.page.getByRole("textbox", { name: "Message" });
          await box.pressSequentially("Hel");
          await writing.waitFor();
          assert.equal(await ada.page.getByText("is writing").count(), 0, "one's own row is shown");
          await box.pressSequentially("lo");
          await box.press("Enter");
          await linus.sees("Ada", "Hello");
          await writing.waitFor({ state: "detached" });
          await box.pressSequentially("never mind");
          await writing.waitFor();
          await box.fill("");
          await writing.waitFor({ state: "detached" });
          // A page that closes without a message: its row expires, and the cron job removes it.
          await box.pressSequentially("gone");
          await writing.waitFor();
          await ada.page.context().setOffline(true);
          await ada.page.close();
          await writing.waitFor({ state: "detached" });
        },
      );

      await step("an answer of the assistant arrives word by word in both tabs", async ({ ada, linus }) => {
        await ada.connection("Live");
        const pages = [ada.page, linus.page];
        await Promise.all(pages.map((page) =>
          page.evaluate(() => {
            const scope = globalThis as unknown as { sawBeginning: boolean };
            scope.sawBeginning = false;
            new MutationObserver(() => {
              const answer = document.querySelector(".message [aria-busy=true]");
              scope.sawBeginning ||= answer?.textContent.includes("You asked") ?? false;
            }).observe(document.body, { subtree: true, childList: true, characterData: true });
          })
        ));
        const isSeen = async () =>
          (await Promise.all(pages.map((page) =>
            page.evaluate(() => (globalThis as unknown as { sawBeginning: boolean }).sawBeginning)
          ))).every(Boolean);
        // An answer takes two seconds. A page of a busy machine may see only its end.
        for (let asked = 1; asked <= QUESTIONS_MAX && !await isSeen(); asked++) {
          await ada.say("/ask Why?");
          for (const page of pages) {
            const answers = page.locator(".message", { hasText: "Assistant" });
            await answers.getByText("before the next one was written.", { exact: false }).nth(asked - 1)
              .waitFor();
            await answers.locator("[aria-busy]").waitFor({ state: "detached" });
          }
        }
        assert.ok(await isSeen(), "a page did not see the beginning of an answer");
      });

      await step(
        "a message is shown before the server answers, and stays the same element when it does",
        async ({ ada, linus }) => {
          await ada.connection("Live");
          // The list must have loaded, because messages are added to it before they are answered.
          await ada.page.locator(".empty").waitFor();
          ada.holdAnswers();
          await ada.say("at once");
          const message = ada.page.locator(".message").filter({ hasText: "at once" });
          await message.waitFor();
          await linus.sees("Ada", "at once");
          assert.match(await message.getAttribute("class") ?? "", /pending/);
          await message.evaluate((element) =>
            Object.assign(element, { isTheSame: true })
          );
          ada.passAnswers();
          await ada.sees("Ada", "at once");
          assert.equal(await message.evaluate((element) => "isTheSame" in element), true);
          assert.deepEqual(await ada.bodies(), ["at once"]);
        },
      );

      await step(
        "earlier messages are added above the visible ones, which do not move",
        async ({ ada, linus }) => {
          await ada.connection("Live");
          const bodies = Array.from({ length: 70 }, (_, n) => `message ${n + 1}`);
          await linus.saysAll(bodies);
          await ada.sees("Linus", "message 70");
          assert.equal((await ada.bodies()).length, 50);
          const first = ada.page.locator(".message").filter({ hasText: /^.*message 21$/ });
          await ada.page.getByRole("button", { name: "Show earlier messages" }).scrollIntoViewIfNeeded();
          const before = await first.boundingBox();
          await ada.page.getByRole("button", { name: "Show earlier messages" }).click();
          await ada.page.locator(".message").filter({ hasText: /^.*message 1$/ }).waitFor({
            state: "attached",
          });
          assert.deepEqual(await ada.bodies(), bodies);
          const after = await first.boundingBox();
          assert.ok(
            Math.abs((after?.y ?? NaN) - (before?.y ?? NaN)) < 40,
            `moved from ${before?.y} to ${after?.y}`,
          );
          // Messages that arrive while earlier ones are read are announced, and one click away.
          await linus.say("news");
          await ada.page.getByRole("button", { name: "New messages" }).click();
          await ada.page.locator(".message").filter({ hasText: "news" }).waitFor();
          await ada.page.getByRole("button", { name: "New messages" }).waitFor({ state: "detached" });
        },
      );

      await step(
        "an address with too long a name of a channel opens one, also where a character is cut in two",
        async ({ ada, linus }) => {
          for (const tab of [ada, linus]) {
            await tab.page.evaluate(() => {
              const scope = globalThis as unknown as { location: Location };
              scope.location.hash = encodeURIComponent(`${"x".repeat(31)}😀 and more`);
            });
            await tab.page.getByRole("heading", { name: "x".repeat(31), exact: true }).waitFor();
          }
          await ada.say("in here");
          await linus.sees("Ada", "in here");
        },
      );

      await step("on a phone the page has one header, and links in messages work", async ({ ada, linus }) => {
        await linus.page.setViewportSize({ width: 390, height: 844 });
        // The new size reaches the page a moment later.
        await linus.page.waitForFunction("innerWidth === 390");
        await linus.connection("Live");
        const { width = 0, height = 0 } = await linus.page.locator("main > header").boundingBox() ?? {};
        assert.ok(width <= 1 && height <= 1, `${width} x ${height}`);
        assert.equal(
          await linus.page.evaluate(() => {
            const { scrollWidth, clientWidth } = (globalThis as unknown as {
              document: { documentElement: { scrollWidth: number; clientWidth: number } };
            }).document.documentElement;
            return scrollWidth - clientWidth;
          }),
          0,
        );
        await ada.say("Look at https://example.com/a. Not at javascript:alert(1)");
        await linus.sees("Ada", "Look at");
        const links = linus.page.locator(".message-body a");
        assert.equal(await links.count(), 1);
        assert.deepEqual(
          await Promise.all(["href", "rel", "target"].map((name) => links.getAttribute(name))),
          ["https://example.com/a", "noopener noreferrer nofollow ugc", "_blank"],
        );
      });

      await step(
        "a message without a name is refused with a reason and stays in the box",
        async ({ ada, linus }) => {
          await ada.page.getByLabel("Your name").fill(" ");
          await ada.say("Who am I");
          await ada.page.getByRole("alert").filter({ hasText: "Enter your name first" }).waitFor();
          assert.equal(await ada.page.getByRole("textbox", { name: "Message" }).inputValue(), "Who am I");
          await linus.say("ping");
          await ada.sees("Linus", "ping");
          assert.deepEqual(await ada.bodies(), ["ping"]);
        },
      );
    }));
});

Deno.test(
  needs(chromium, "messages that are sent while a killed server restarts arrive once"),
  async () => {
    // The restarted server has the same port.
    await withServer(
      freePort(),
      (server, dataDir) =>
        withBrowser((browser) =>
          withTabs({ url: server.url, browser }, async ({ ada, linus }) => {
            await ada.say("before");
            // Later messages are added to the list at once only if it has loaded here.
            for (const tab of [ada, linus]) await tab.sees("Ada", "before");
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
          })
        ),
    );
  },
);
