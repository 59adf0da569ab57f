/** Starts a Chromium for tests in a real browser. */
import type { Browser, Page } from "playwright-core";
import { chromium, pathOf } from "./services.ts";
import { HANG_MS } from "./waiting.ts";

/** No sandbox, because tests run as root in containers too; nothing that talks to the outside. */
const LAUNCH_FLAGS = [
  "--no-sandbox",
  "--disable-dev-shm-usage",
  // Searching the system's extensions takes a fifth of a start.
  "--disable-extensions",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Time after which an action or a wait on a page has failed. The longest ones take a few seconds. */
export const PAGE_WAIT_MS = 100_000;

/** Starts a headless Chromium. The caller must close it. Throws if it is not installed: such a test `needs(chromium, ...)`. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = pathOf(chromium);
  // playwright-core checks for WSL by reading a file that needs all permissions. This variable prevents
  // that.
  Deno.env.set("__IS_WSL_TEST__", "1");
  const { chromium: driver } = await import("playwright-core");
  const browser = await driver.launch({ executablePath, args: LAUNCH_FLAGS, timeout: HANG_MS });
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PAGE_WAIT_MS);
    context.on("page", limitScripts);
    return context;
  };
  const newPage = browser.newPage.bind(browser);
  browser.newPage = async (options) => {
    const page = await newPage(options);
    page.setDefaultTimeout(PAGE_WAIT_MS);
    limitScripts(page);
    return page;
  };
  return browser;
}

/** Lets scripts of a page fail when they have not ended in time. Playwright has no timeout for them. */
function limitScripts(page: Page): void {
  const evaluate = page.evaluate.bind(page) as (...args: readonly unknown[]) => Promise<unknown>;
  const limited = async (...args: readonly unknown[]) => {
    const expired = Promise.withResolvers<never>();
    const timer = setTimeout(
      () =>
        expired.reject(new Error(`A script of the page has not ended after ${PAGE_WAIT_MS} ms: ${args[0]}`)),
      PAGE_WAIT_MS,
    );
    try {
      return await Promise.race([evaluate(...args), expired.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
  Object.assign(page, { evaluate: limited });
}
