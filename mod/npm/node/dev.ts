/**
 * `syncline dev`: the server that reloads functions, the app's TypeScript beside it, and Vite behind it where the app has
 * one, so that all of the app is at one address. It ends when the server does, and everything with it.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { PlainError } from "./plain_error.ts";
import { findProject, isFolder, readManifest } from "./project.ts";
import { ended, openRuntime, startDeno } from "./runtime.ts";
import { watchTypes } from "./types_watch.ts";
import { startVite } from "./vite_server.ts";

/** `args` are options of `serve`. */
export async function dev(args: readonly string[]): Promise<number> {
  if (args.includes("--help")) return await serveHelp(args);
  const root = findProject(process.cwd());
  if (root === null) {
    throw new PlainError(
      "There is no app here: make one with `npm create syncline@latest my-app`, or add one with `npx syncline init`",
    );
  }
  if (!isFolder(join(root, "functions")) && !given(args, "--functions")) {
    throw new PlainError(`${root} has no folder "functions": \`npx syncline init\` makes it`);
  }
  const runtime = openRuntime();
  await using vite = await startVite(root, { wanted: !given(args, "--static") && usesVite(root) });
  const flags = ["--dev", "--skip-type-check", ...frontend({ root, vite: vite?.url ?? null, args })];
  const server = startDeno(runtime, {
    set: "serve",
    args: ["serve", ...flags, ...args],
    cwd: root,
    stdio: "inherit",
  });
  using types = watchTypes(root);
  using _guard = guard([server.pid, types?.pid]);
  return await ended(server);
}

async function serveHelp(args: readonly string[]): Promise<number> {
  return await ended(
    startDeno(openRuntime(), {
      set: "serve",
      args: ["serve", ...args],
      cwd: process.cwd(),
      stdio: "inherit",
    }),
  );
}

function given(args: readonly string[], flag: string): boolean {
  return args.some((arg) => arg === flag || arg.startsWith(`${flag}=`));
}

function usesVite(root: string): boolean {
  const { dependencies, devDependencies } = readManifest(root);
  return "vite" in { ...dependencies, ...devDependencies };
}

/** What shows the app: Vite, or a folder of plain files. */
function frontend(
  { root, vite, args }: {
    readonly root: string;
    readonly vite: string | null;
    readonly args: readonly string[];
  },
): string[] {
  if (vite !== null) return ["--dev-frontend", vite];
  return !given(args, "--static") && isFolder(join(root, "public")) ? ["--static", "public"] : [];
}

/**
 * Ends what was started when this process ends without having told it: the guard reads from a pipe that ends with this
 * process. Disposing of it ends the guard alone.
 */
function guard(started: readonly (number | undefined)[]): Disposable | null {
  if (process.platform === "win32") return null;
  const pids = started.filter((pid) => pid !== undefined).join(" ");
  const script = `trap '' INT TERM HUP; cat >/dev/null; kill -TERM ${pids} 2>/dev/null`;
  const watcher = spawn("sh", ["-c", script], { stdio: ["pipe", "ignore", "ignore"] });
  watcher.unref();
  return { [Symbol.dispose]: () => void watcher.kill("SIGKILL") };
}
