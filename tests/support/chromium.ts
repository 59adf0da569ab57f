/** Finds a Chromium for tests in a real browser, or installs Debian's, and starts it. */
import type { Browser } from "playwright-core";

/** Where a Chromium stands on the systems people test on. */
const KNOWN_PATHS = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/snap/bin/chromium",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** No sandbox, because tests run as root in containers too; nothing that talks to the outside. */
const LAUNCH_FLAGS = [
  "--no-sandbox",
  "--disable-dev-shm-usage",
  // Those of the system: looking through them is a fifth of a start.
  "--disable-extensions",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const LAUNCH_MS = 60_000;

/**
 * A headless Chromium; close it with its `close()`. Throws an error that says what to do when there is none and it
 * cannot be installed.
 */
export async function launchChromium(): Promise<Browser> {
  const executablePath = await findChromium() ?? await installChromium();
  // While it loads, playwright-core looks whether it runs on WSL, at a file that needs every permission there is.
  // With this variable of its own tests it does not look.
  Deno.env.set("__IS_WSL_TEST__", "1");
  const { chromium } = await import("playwright-core");
  return await chromium.launch({ executablePath, args: LAUNCH_FLAGS, timeout: LAUNCH_MS });
}

async function findChromium(): Promise<string | null> {
  const chosen = Deno.env.get("CHROMIUM");
  if (chosen) {
    if (await isFile(chosen)) return chosen;
    throw new Error(`Cannot find the browser that CHROMIUM names: "${chosen}" is not a file`);
  }
  for (const path of KNOWN_PATHS) if (await isFile(path)) return path;
  return null;
}

async function installChromium(): Promise<string> {
  if (Deno.build.os !== "linux" || Deno.uid() !== 0 || !(await isFile("/usr/bin/apt-get"))) {
    throw missing("it can be installed by itself only as root on Debian and its relatives");
  }
  // Test files run side by side: one installs it, the others wait and find it.
  using lock = await Deno.open("/tmp/syncline-chromium.lock", { create: true, write: true });
  await lock.lock(true);
  const installed = await findChromium();
  if (installed !== null) return installed;
  const update = await apt("update");
  const install = await apt("install", "--yes", "--no-install-recommends", "chromium");
  const path = await findChromium();
  if (path === null) throw missing(`apt-get could not install it:\n${update}\n${install}`);
  return path;
}

/** Runs apt-get and returns the end of what it printed. */
async function apt(...args: string[]): Promise<string> {
  const { stdout, stderr } = await new Deno.Command("/usr/bin/apt-get", {
    // Another apt-get may be under way: wait for it instead of failing.
    args: ["-o", "DPkg::Lock::Timeout=300", ...args],
    env: { DEBIAN_FRONTEND: "noninteractive" },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return `${decoder.decode(stdout)}${decoder.decode(stderr)}`.trim().split("\n").slice(-5).join("\n");
}

function missing(reason: string): Error {
  return new Error(
    `There is no Chromium for the browser tests, and ${reason}.\n` +
      "Install it (Debian: apt-get install chromium, macOS: brew install --cask chromium),\n" +
      "or set CHROMIUM to the path of a Chromium or Chrome.",
  );
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isFile;
  } catch {
    return false;
  }
}
