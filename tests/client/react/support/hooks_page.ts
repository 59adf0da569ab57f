/** A page with the hooks in a real browser, on a real server. */
import { build, stop } from "esbuild";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageAliases } from "../../../../examples/chat/build/npm_packages.ts";
import { ServerProcess } from "../../../support/processes/server_process.ts";
import { launchChromium, PAGE_WAIT_MS } from "../../../support/chromium.ts";
import type { Scenarios } from "../page/main.tsx";
import { TempFolder } from "../../../support/temp_folder.ts";
import { codeOf } from "../../../auth/support/test_factors.ts";

/** Time to read what the page shows after a scenario has not ended. */
const PAGE_TEXT_MS = 5_000;

export interface HooksPage {
  readonly url: string;
  readonly server: ServerProcess;
  /** Runs a scenario of the page and returns its result. Throws the scenario's error. */
  run<Name extends keyof Scenarios>(
    name: Name,
    ...options: Parameters<Scenarios[Name]>
  ): Promise<Awaited<ReturnType<Scenarios[Name]>>>;
}

/** Builds the page, serves it, opens it, and ends everything after `test`. */
export async function withHooksPage(test: (page: HooksPage) => Promise<void>): Promise<void> {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  await buildPage(join(dir, "public"));
  await using server = await ServerProcess.start({
    dataDir: join(dir, "data"),
    functions: "tests/client/react/functions",
    flags: ["--static", join(dir, "public"), "--anonymous-sign-in"],
  });
  const url = `http://127.0.0.1:${server.port}`;
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    // The user's phone.
    await page.exposeFunction("codeOf", (secret: string, offMs: number) => codeOf(secret, Date.now(), offMs));
    await page.goto(url);
    await test({
      url,
      server,
      run: async (name, ...[options]) => {
        // Playwright limits no scripts. Later scenarios fail at once, because the page is closed.
        const expired = Promise.withResolvers<never>();
        const timer = setTimeout(async () => {
          const text = await page.locator("body").innerText({ timeout: PAGE_TEXT_MS }).catch(String);
          expired.reject(
            new Error(
              `The scenario "${name}" has not ended after ${PAGE_WAIT_MS} ms. The page shows:\n${text}`,
            ),
          );
          await page.close();
        }, PAGE_WAIT_MS);
        const ended = page.evaluate(
          ([name, options]) =>
            (globalThis as unknown as { run(name: unknown, options: unknown): Promise<unknown> })
              .run(name, options),
          [name, options] as const,
        );
        const result = await Promise.race([ended, expired.promise]).finally(() => clearTimeout(timer));
        if (errors.length > 0) throw new Error(`Errors on the page: ${errors.splice(0).join(", ")}`);
        return result as never;
      },
    });
  } finally {
    await browser.close();
  }
}

async function buildPage(dir: string): Promise<void> {
  try {
    await build({
      entryPoints: [fileURLToPath(new URL("../page/main.tsx", import.meta.url))],
      outfile: join(dir, "page.js"),
      bundle: true,
      format: "esm",
      jsx: "automatic",
      // React's own checks are on, which strict mode is for.
      define: { "process.env.NODE_ENV": '"development"' },
      alias: packageAliases(),
      logLevel: "error",
    });
  } finally {
    await stop();
  }
  await Deno.writeTextFile(
    join(dir, "index.html"),
    '<!doctype html><title>Hooks</title><script type="module" src="page.js"></script>\n',
  );
}
