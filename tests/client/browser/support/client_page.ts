/** A blank page of a real server, for tests that run the client in a real browser. */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { ServerProcess } from "../../../support/processes/server_process.ts";
import { launchChromium } from "../../../support/chromium.ts";
import { TempFolder } from "../../../support/temp_folder.ts";

export interface ClientPage {
  readonly browser: Browser;
  readonly page: Page;
  readonly server: ServerProcess;
}

/** Starts a server and opens its blank page; ends everything after `test`. Errors of the page fail it. */
export async function withClientPage(test: (page: ClientPage) => Promise<void>): Promise<void> {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  await Deno.mkdir(join(dir, "public"));
  await Deno.writeTextFile(join(dir, "public/index.html"), "<!doctype html><title>Client</title>\n");
  await using server = await ServerProcess.start({
    dataDir: join(dir, "data"),
    functions: "tests/client/functions",
    flags: ["--static", join(dir, "public")],
  });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on("pageerror", ({ message }) => errors.push(message));
    await page.goto(`http://127.0.0.1:${server.port}/`);
    await test({ browser, page, server });
    if (errors.length > 0) throw new Error(`Errors on the page: ${errors.join(", ")}`);
  } finally {
    await browser.close();
  }
}
