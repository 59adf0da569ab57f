/** One Chromium for all tests of a process, because a start takes as long as many tests. */
import type { Browser, BrowserContext } from "playwright-core";
import { launchChromium } from "./chromium.ts";
import { chromium, needs } from "./services.ts";

/** A test's part of the browser: contexts do not share cookies, storage or caches. */
export interface SharedChromium {
  readonly newContext: Browser["newContext"];
  /** Closes the contexts of this test. The browser ends after the last test. */
  close(): Promise<void>;
}

/** Name and options of a test with the browser, whose driver keeps its timers and pipes until the last test. */
export function inChromium(
  name: string,
): Pick<Deno.TestDefinition, "ignore" | "sanitizeOps" | "sanitizeResources"> & {
  readonly name: string;
} {
  return { ...needs(chromium, name), sanitizeOps: false, sanitizeResources: false };
}

let browser: Promise<Browser> | null = null;

Deno.test.afterAll(async () => await (await browser)?.close());

/** Starts the browser for the first caller. Throws if it is not installed: define such a test with `inChromium`. */
export async function sharedChromium(): Promise<SharedChromium> {
  const started = await (browser ??= launchChromium());
  const contexts: BrowserContext[] = [];
  return {
    async newContext(options) {
      const context = await started.newContext(options);
      contexts.push(context);
      return context;
    },
    async close() {
      await Promise.all(contexts.map((context) => context.close()));
    },
  };
}
