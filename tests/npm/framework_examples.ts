/**
 * The Next.js and React Router examples, installed from packed packages with Node alone, built, and opened side by side on one
 * server. It installs and builds two frameworks, so it is not part of the suite: `deno task test:long frameworks`.
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
import { Registry } from "./support/registry.ts";

interface Example {
  readonly folder: string;
  /** Variable with the address of the server. */
  readonly variable: string;
  /** Starts the built page on a port. */
  readonly start: (port: number) => string;
}

const EXAMPLES: readonly [Example, Example] = [
  {
    folder: "next",
    variable: "NEXT_PUBLIC_SYNCLINE_URL",
    start: (port) => `npm start -- --hostname 127.0.0.1 --port ${port}`,
  },
  {
    folder: "react_router",
    variable: "VITE_SYNCLINE_URL",
    start: (port) => `HOST=127.0.0.1 PORT=${port} npm start`,
  },
];
/** Written by a developer's own commands. */
const NOT_COPIED = /^(?:node_modules|data|build|\.next|\.react-router)\/$|^package-lock\.json$/;

Deno.test({
  ...needs([npm, chromium], "pages of Next.js and React Router show each other's writes"),
  // The browser's driver keeps its own timers and pipes.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using registry = await Registry.start();
    await using machine = await NodeMachine.create(registry.npmrc);
    const built = await new Deno.Command(Deno.execPath(), {
      args: ["task", "--quiet", "build:npm"],
      cwd: projectDir,
      stdin: "null",
    }).output();
    assert.ok(built.success, new TextDecoder().decode(built.stderr));
    await machine.done(`npm publish --silent ${join(projectDir, "dist/npm/syncline")}`);
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
      await using next = await started(machine, EXAMPLES[0], url);
      await using router = await started(machine, EXAMPLES[1], url);
      await writesAppear(browser, [next.address, router.address]);
      await next.running.interrupt();
      await router.running.interrupt();
    } finally {
      await browser.close();
    }
    await server.interrupt();
  },
});

interface StartedPage extends AsyncDisposable {
  readonly address: string;
  readonly running: Running;
}

/** Checks the types of an example, builds it and serves it. */
async function started(machine: NodeMachine, example: Example, url: string): Promise<StartedPage> {
  const { folder: at, variable, start } = example;
  const env = { [variable]: url, NEXT_TELEMETRY_DISABLED: "1" };
  await machine.done("npm run build", { at, env });
  await machine.done("node_modules/.bin/tsc", { at });
  const port = freePort();
  const running = machine.start(start(port), { at, env });
  await running.line(new RegExp(`http://\\S+:${port}`));
  return {
    address: `http://127.0.0.1:${port}/`,
    running,
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

/** Each page adds a task, which appears in the other. A page arrives with the tasks, before a script has run. */
async function writesAppear(browser: Browser, addresses: readonly [string, string]): Promise<void> {
  const pages = await Promise.all(addresses.map((address) => signedUp(browser, address)));
  for (const [number, page] of pages.entries()) {
    const text = `Task ${number}`;
    await page.getByLabel("New task").fill(text);
    await page.getByRole("button", { name: "Add" }).click();
    for (const shown of pages) await shown.getByText(text).waitFor();
    for (const address of addresses) assert.match(await (await fetch(address)).text(), new RegExp(text));
  }
}

async function signedUp(browser: Browser, address: string): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(address);
  await page.getByLabel("Email").fill(`user${new URL(address).port}@example.com`);
  await page.getByLabel("Password").fill("secret words");
  await page.getByRole("button", { name: "Sign up" }).click();
  await page.getByLabel("New task").waitFor();
  assert.deepEqual(problems, []);
  return page;
}
