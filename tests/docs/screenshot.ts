/**
 * Creates the README's picture, `docs/images/syncline.png`: two browsers in the chat example and the dashboard, all of one
 * running server. `deno task build:screenshot` runs it; it needs a Chromium.
 */
import type { Browser, Page } from "playwright-core";
import { ChatTab } from "../support/chat_tab.ts";
import { launchChromium } from "../support/chromium.ts";
import { Child } from "../support/processes/child.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { repository } from "./pages.ts";

const CHAT = { width: 380, height: 400 };
const DASHBOARD = { width: 1080, height: 675 };
const CHAT_SHOWN = 240;
const DASHBOARD_SHOWN = 880;
const CONVERSATION = [
  ["Ada", "The new import is deployed"],
  ["Linus", "Saw it, this page just updated"],
  ["Ada", "No reload, on either side"],
  ["Linus", "And the dashboard shows each call"],
] as const;

await using dataFolder = new TempFolder();
await using child = new Child({
  args: [
    ..."run --quiet --no-prompt -P=serve main.ts --port 0".split(" "),
    ...["--functions", "examples/chat/functions", "--static", "examples/chat/public"],
    ...["--data", dataFolder.path],
  ],
});
const [setup = ""] = await child.line(/http:\S+svc_setup_token=\S+/);
const url = new URL(setup).origin;
const browser = await launchChromium();
try {
  const [ada, linus] = await chat();
  const dashboard = await openDashboard();
  await Promise.all([ada, linus].map((page) => page.setViewportSize(CHAT)));
  const pictures = await Promise.all([ada, linus, dashboard].map((page) => page.screenshot()));
  await Deno.mkdir(`${repository}/docs/images`, { recursive: true });
  await Deno.writeFile(`${repository}/docs/images/syncline.png`, await compose(browser, pictures));
} finally {
  await browser.close();
}

async function chat(): Promise<[Page, Page]> {
  const [ada, linus] = await Promise.all(
    ["Ada", "Linus"].map((name) => ChatTab.open(browser, { url: `${url}/#general`, name })),
  );
  if (ada === undefined || linus === undefined) throw new TypeError("Two tabs are needed");
  for (const [name, text] of CONVERSATION) {
    await (name === "Ada" ? ada : linus).say(text);
    await ada.sees(name, text);
    await linus.sees(name, text);
  }
  return [ada.page, linus.page];
}

async function openDashboard(): Promise<Page> {
  const page = await browser.newPage({ viewport: DASHBOARD });
  await page.goto(setup);
  await page.getByLabel("Email address").fill("ada@example.com");
  await page.getByLabel("Password").fill("correct horse battery");
  await page.getByRole("button", { name: "Create administrator" }).click();
  await page.locator("#view").waitFor();
  await page.goto(`${url}/_/#/data/messages`);
  await page.getByText(CONVERSATION[0][1]).first().waitFor();
  return page;
}

/** Arranges the pictures side by side, each below a title. */
async function compose(browser: Browser, pictures: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const page = await browser.newPage({
    viewport: { width: CHAT_SHOWN + DASHBOARD_SHOWN + 3 * 24 + 4, height: 640 },
  });
  const [ada, linus, dashboard] = pictures.map((bytes) => `data:image/png;base64,${bytes.toBase64()}`);
  const frame = (title: string, picture: string | undefined, width: number) =>
    `<figure><figcaption>${title}</figcaption><img src="${picture}" width="${width}"></figure>`;
  await page.setContent(`<style>
    body { margin: 0; padding: 24px; display: flex; gap: 24px; align-items: flex-start; background: #fff; font: 14px system-ui, sans-serif; }
    div { display: grid; gap: 16px; }
    figure { margin: 0; border: 1px solid #ccc; border-radius: 8px; overflow: hidden; }
    figcaption { padding: 4px 10px; background: #eee; border-bottom: 1px solid #ccc; color: #333; }
    img { display: block; }
  </style>
  <div>${frame("Ada’s browser", ada, CHAT_SHOWN)}${frame("Linus’s browser", linus, CHAT_SHOWN)}</div>
  ${frame("The dashboard", dashboard, DASHBOARD_SHOWN)}`);
  await page.locator("img").last().waitFor();
  const bytes = await page.locator("body").screenshot({ type: "png" });
  return new Uint8Array(bytes);
}
