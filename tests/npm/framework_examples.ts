/**
 * The Next.js, SvelteKit and React Router examples, installed from packed packages with Node alone, built, and opened side by side
 * on one server. It installs and builds three frameworks, so it is not part of the suite: `deno task test:long frameworks`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { copyTree } from "../../mod/npm/build/copy_tree.ts";
import { launchChromium } from "../support/chromium.ts";
import { freePort } from "../support/ports.ts";
import { projectDir } from "../support/processes/child.ts";
import { chromium, needs, npm } from "../support/services.ts";
import { NodeMachine, type Running } from "./support/node_machine.ts";
import { publishSyncline } from "./support/published.ts";
import { Registry } from "./support/registry.ts";

interface Example {
  readonly folder: string;
  /** Variable with the address of the server. */
  readonly variable: string;
  /** Starts the built page on a port. */
  readonly start: (port: number) => string;
  /** A command that checks its types, unless its build does. */
  readonly check?: string;
  /** Whether the server renders the signed-in user, whose access token is in a cookie. */
  readonly rendersUser: boolean;
}

const EXAMPLES: readonly Example[] = [
  {
    folder: "next",
    variable: "NEXT_PUBLIC_SYNCLINE_URL",
    start: (port) => `npm start -- --hostname 127.0.0.1 --port ${port}`,
    check: "node_modules/.bin/tsc",
    rendersUser: true,
  },
  {
    folder: "svelte_kit",
    variable: "VITE_SYNCLINE_URL",
    start: (port) => `HOST=127.0.0.1 PORT=${port} npm start`,
    rendersUser: true,
  },
  {
    folder: "react_router",
    variable: "VITE_SYNCLINE_URL",
    start: (port) => `HOST=127.0.0.1 PORT=${port} npm start`,
    check: "node_modules/.bin/tsc",
    rendersUser: false,
  },
];
/** Written by a developer's own commands. */
const NOT_COPIED = /^(?:node_modules|data|build|\.next|\.react-router|\.svelte-kit)\/$|^package-lock\.json$/;

Deno.test({
  ...needs(
    [npm, chromium],
    "pages of Next.js, SvelteKit and React Router show each other's writes, and the signed-in user from the start",
  ),
  // The browser's driver keeps its own timers and pipes.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using registry = await Registry.start();
    await using machine = await NodeMachine.create(registry.npmrc);
    await publishSyncline(machine);
    for (const { folder } of EXAMPLES) {
      await copyTree(
        join(projectDir, "examples", folder),
        machine.at(folder),
        (path) => !NOT_COPIED.test(path),
      );
      await machine.done("npm install", { at: folder });
    }
    await using server = machine.start("exec node_modules/.bin/syncline serve --port 0", { at: "next" });
    const [, url = ""] = await server.line(/server +(http:\/\/127\.0\.0\.1:\d+)\//);
    const browser = await launchChromium();
    try {
      await using pages = new AsyncDisposableStack();
      const examples: StartedPage[] = [];
      for (const example of EXAMPLES) examples.push(pages.use(await started(machine, example, url)));
      await writesAppear(browser, examples);
      for (const { running } of examples) await running.interrupt();
    } finally {
      await browser.close();
    }
    await server.interrupt();
  },
});

interface StartedPage extends AsyncDisposable {
  readonly rendersUser: boolean;
  readonly address: string;
  readonly running: Running;
}

/** Checks the types of an example, builds it and serves it. */
async function started(machine: NodeMachine, example: Example, url: string): Promise<StartedPage> {
  const { folder: at, variable, start, check, rendersUser } = example;
  const env = { [variable]: url, NEXT_TELEMETRY_DISABLED: "1" };
  await machine.done("npm run build", { at, env });
  if (check !== undefined) await machine.done(check, { at });
  const port = freePort();
  const running = machine.start(start(port), { at, env });
  await running.line(new RegExp(`http://\\S+:${port}`));
  return {
    rendersUser,
    address: `http://127.0.0.1:${port}/`,
    running,
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

/**
 * Each page adds a task, which appears in the others. A page arrives with the tasks, before a script has run, and where it renders
 * the user, it shows no form to sign up until it is live.
 */
async function writesAppear(browser: Browser, examples: readonly StartedPage[]): Promise<void> {
  const problems: string[] = [];
  const pages = await Promise.all(examples.map(({ address }) => signedUp(browser, { address, problems })));
  for (const [number, page] of pages.entries()) {
    const text = `Task ${number}`;
    await page.getByLabel("New task").fill(text);
    await page.getByRole("button", { name: "Add" }).click();
    for (const shown of pages) await shown.getByText(text).waitFor();
    for (const { address } of examples) assert.match(await (await fetch(address)).text(), new RegExp(text));
  }
  for (const [number, { address, rendersUser }] of examples.entries()) {
    const page = pages[number];
    if (page === undefined || !rendersUser) continue;
    const html = await (await page.request.get(address)).text();
    assert.ok(html.includes(emailOf(address)), html);
    assert.doesNotMatch(await (await fetch(address)).text(), /@example\.com/);
    await page.addInitScript(() => {
      const scope = globalThis as unknown as { hasFlickered: boolean };
      scope.hasFlickered = false;
      new MutationObserver(() => scope.hasFlickered ||= document.querySelector("input[type=email]") !== null)
        .observe(document, { childList: true, subtree: true });
    });
    const live = page.waitForEvent("websocket").then((socket) => socket.waitForEvent("framereceived"));
    await page.reload();
    await live;
    await page.getByLabel("New task").fill(`Live ${number}`);
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByText(`Live ${number}`).waitFor();
    assert.equal(
      await page.evaluate(() => (globalThis as unknown as { hasFlickered: boolean }).hasFlickered),
      false,
    );
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Email").waitFor();
    assert.doesNotMatch(await (await page.request.get(address)).text(), /@example\.com/);
    await pages[(number + 1) % pages.length]?.getByText(`Live ${number}`).waitFor();
  }
  assert.deepEqual(problems, []);
}

function emailOf(address: string): string {
  return `user${new URL(address).port}@example.com`;
}

async function signedUp(
  browser: Browser,
  { address, problems }: { readonly address: string; readonly problems: string[] },
): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(address);
  await page.getByLabel("Email").fill(emailOf(address));
  await page.getByLabel("Password").fill("secret words");
  await page.getByRole("button", { name: "Sign up" }).click();
  await page.getByLabel("New task").waitFor();
  return page;
}
