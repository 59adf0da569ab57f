/** Files in examples/todo, in real browsers: thumbnails for users with access to the list, and nothing for others. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import type { BrowserContext, Page } from "playwright-core";
import { Child } from "../support/processes/child.ts";
import { FaultProxy } from "../client/support/fault_proxy.ts";
import { makeImages } from "../storage/support/images.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { inChromium, sharedChromium } from "../support/shared_chromium.ts";

/** Folder of screenshots. Default: no screenshots. */
const SHOTS = Deno.env.get("SYNCLINE_SCREENSHOTS");

interface World {
  readonly url: string;
  readonly port: number;
  /** A browser of another user, with its own address. */
  newContext(): Promise<BrowserContext>;
}

async function inBrowsers(work: (world: World) => Promise<void>): Promise<void> {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  await using server = new Child({
    args: [
      ..."run --quiet --no-prompt -P=serve main.ts --port 0 --storage-private".split(" "),
      ...["--functions", "examples/todo/functions", "--static", "examples/todo/public", "--data", dataDir],
    ],
  });
  const [url, port] = await server.line(/http:\/\/127\.0\.0\.1:(\d+)/);
  const browser = await sharedChromium();
  try {
    await work({ url, port: Number(port), newContext: () => browser.newContext({ locale: "en-US" }) });
  } finally {
    await browser.close();
  }
}

async function open(context: BrowserContext, url: string): Promise<{ page: Page; errors: string[] }> {
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(url);
  return { page, errors };
}

async function signUp(page: Page, email: string): Promise<void> {
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByLabel("Email address").fill(email);
  await page.getByLabel("Password").fill("correct horse");
  await page.getByRole("button", { name: "Create account", exact: true }).click();
}

async function listWith(page: Page, { title, items }: { title: string; items: string[] }): Promise<void> {
  await page.getByLabel("Name of a new list").fill(title);
  await page.getByLabel("Name of a new list").press("Enter");
  await page.getByRole("heading", { name: title }).waitFor();
  for (const item of items) {
    const box = page.getByLabel("New task");
    await box.fill(item);
    await box.press("Enter");
    await page.getByRole("checkbox", { name: `Done: ${item}`, exact: true }).waitFor();
  }
}

/** The size of a picture once it is there. */
async function sizeOf(page: Page, selector: string): Promise<string> {
  const shown = await page.waitForFunction(
    (selector) => {
      const image = document.querySelector<HTMLImageElement>(selector);
      return image?.complete && image.naturalWidth > 0
        ? `${image.naturalWidth}x${image.naturalHeight}`
        : null;
    },
    selector,
  );
  return String(await shown.jsonValue());
}

Deno.test(
  inChromium(
    "a picture is a thumbnail for its uploader and a member, opens in full, and others cannot read it",
  ),
  async () => {
    const { png } = await makeImages({ png: { width: 600, height: 400, format: "png" } });
    await inBrowsers(async ({ url, newContext }) => {
      const [ada, bob, eve] = await Promise.all([newContext(), newContext(), newContext()]);
      const { page: adas, errors } = await open(ada, url);
      await signUp(adas, "ada@example.com");
      await listWith(adas, { title: "Kitchen", items: ["Choose the tiles", "Ask for an offer"] });
      const chooser = adas.waitForEvent("filechooser");
      await adas.getByRole("button", { name: "Attach files to: Choose the tiles" }).click();
      await (await chooser).setFiles([
        { name: "tiles.png", mimeType: "image/png", buffer: Buffer.from(png) },
        { name: "no picture.jpg", mimeType: "image/jpeg", buffer: Buffer.from("nothing of the kind") },
        { name: "offer.txt", mimeType: "text/plain", buffer: Buffer.from("1,000 a square metre") },
      ]);
      assert.equal(await sizeOf(adas, 'img[alt="tiles.png"]'), "144x144");
      await adas.getByRole("button", { name: "Open offer.txt" }).filter({ hasText: "20 byte" }).waitFor();
      await adas.getByRole("button", { name: "Open no picture.jpg" }).filter({ hasText: "19 byte" })
        .waitFor();

      await adas.getByRole("button", { name: "Share" }).click();
      await adas.getByRole("dialog", { name: "Share this list" }).waitFor();
      const link = await adas.getByLabel("Link to this list").inputValue();
      if (SHOTS !== undefined) await shoot(adas, "share");
      assert.ok(link.startsWith(`${url}/#join=`), link);
      await adas.getByRole("button", { name: "Close" }).click();
      const { page: bobs, errors: bobsErrors } = await open(bob, link);
      await signUp(bobs, "bob@example.com");
      await bobs.getByRole("heading", { name: "Kitchen" }).waitFor();
      assert.equal(await sizeOf(bobs, 'img[alt="tiles.png"]'), "144x144");
      await bobs.getByRole("button", { name: "Open tiles.png" }).click();
      assert.equal(await sizeOf(bobs, "#viewer img"), "600x400");
      if (SHOTS !== undefined) await shoot(bobs, "viewer");
      await bobs.keyboard.press("Escape");
      const download = bobs.waitForEvent("download");
      await bobs.getByRole("button", { name: "Open offer.txt" }).click();
      assert.equal((await download).suggestedFilename(), "offer.txt");

      if (SHOTS !== undefined) await shootAll(bobs, "list");
      const { page: eves } = await open(eve, adas.url());
      await signUp(eves, "eve@example.com");
      await eves.getByText("A fresh start.").waitFor();
      assert.equal(await eves.locator("img[src]").count(), 0);
      const src = await adas.locator('img[alt="tiles.png"]').getAttribute("src");
      const signed = new URL(src ?? "", url).href;
      const bare = signed.replace(/\?.*/, "");
      const answers = await eves.evaluate(
        (urls) => Promise.all(urls.map(async (url) => (await fetch(url)).status)),
        [bare, `${bare}?thumb=144x144`, signed.replace(/exp=\d/, "exp=9")],
      );
      assert.deepEqual(answers, [403, 403, 403]);

      await bobs.getByRole("button", { name: "Delete tiles.png" }).click();
      await adas.locator('img[alt="tiles.png"]').waitFor({ state: "detached" });
      const gone = await adas.evaluate(
        async (url) => (await fetch(url, { cache: "no-store" })).status,
        signed,
      );
      assert.equal(gone, 404);
      assert.deepEqual([...errors, ...bobsErrors], []);
    });
  },
);

Deno.test(
  inChromium("a large file arrives over a line that breaks, its progress is seen, and it can be stopped"),
  async () => {
    const contents = randomBytes(20 * 1024 * 1024);
    await inBrowsers(async ({ port, newContext }) => {
      await using proxy = new FaultProxy(port);
      const context = await newContext();
      const { page, errors } = await open(context, `http://127.0.0.1:${proxy.port}`);
      await signUp(page, "ada@example.com");
      await listWith(page, { title: "Films", items: ["Cut it"] });
      await using folder = new TempFolder();
      const choose = async (name: string) => {
        const chooser = page.waitForEvent("filechooser");
        await page.getByRole("button", { name: "Attach files to: Cut it" }).click();
        await Deno.writeFile(folder.at(name), contents);
        await (await chooser).setFiles(folder.at(name));
      };
      const pieces: string[] = [];
      let cuts = 0;
      page.on("request", (request) => {
        if (request.method() !== "PATCH") return;
        pieces.push(request.headers()["upload-offset"] ?? "");
        if (pieces.length !== 2) return;
        // Every connection is cut during the second piece, and a few times after that.
        const breaking = setInterval(() => {
          if (proxy.strike("cut", Math.random())) cuts++;
        }, 5);
        setTimeout(() => clearInterval(breaking), 200);
      });
      await choose("film.mp4");
      await page.locator('progress[aria-label="Uploading film.mp4"]').waitFor();
      await page.getByRole("button", { name: "Open film.mp4" }).filter({ hasText: "21 MB" }).waitFor();
      assert.ok(pieces.length > 2, pieces.join(" "));
      assert.ok(cuts > 0);
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name: "Open film.mp4" }).click();
      const bytes = await Deno.readFile(await (await download).path());
      const sha256 = (of: Uint8Array) => createHash("sha256").update(of).digest("hex");
      assert.equal(sha256(bytes), sha256(contents));

      const held = Promise.withResolvers<void>();
      await context.route("**/api/storage/resumable/**", async (route) => {
        if (route.request().method() === "PATCH") await held.promise;
        await route.continue().catch(() => {});
      });
      const deleted = page.waitForRequest((request) => request.method() === "DELETE");
      const begun = page.waitForRequest((request) => request.method() === "PATCH");
      await choose("second.mp4");
      await begun;
      if (SHOTS !== undefined) await shootAll(page, "uploading");
      await page.getByRole("button", { name: "Stop uploading second.mp4" }).click();
      await deleted;
      await page.locator(".uploading").waitFor({ state: "detached" });
      held.resolve();
      assert.deepEqual(errors, []);
      await context.unrouteAll({ behavior: "ignoreErrors" });
    });
  },
);

/** On a desk and on a phone, light and dark. */
async function shootAll(page: Page, name: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const [width, height] of [[1_200, 700], [390, 700]] as const) {
      await page.setViewportSize({ width, height });
      await shoot(page, `${name} ${colorScheme} ${width}`);
    }
  }
  await page.setViewportSize({ width: 1_200, height: 700 });
}

async function shoot(page: Page, name: string): Promise<void> {
  await Deno.writeFile(`${SHOTS}/${name}.png`, await page.screenshot());
}
