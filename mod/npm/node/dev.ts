/** `syncline dev`: the server with reloading, the type checker and Vite behind it, on one origin. All stop together. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { PlainError } from "./plain_error.ts";
import { findProject, isFolder, readManifest } from "./project.ts";
import { ended, openRuntime, type Runtime, startDeno } from "./runtime.ts";
import { watchTypes } from "./types_watch.ts";
import { openViteServer } from "./vite_server.ts";

/** `args` are options of `serve`. */
export async function dev(args: readonly string[]): Promise<number> {
  if (args.includes("--help")) return await serveHelp(args);
  const root = findProject(process.cwd());
  if (root === null) {
    throw new PlainError(
      "No app in this folder: create one with `npm create syncline@latest my-app`, or add one with `npx syncline init`",
    );
  }
  if (!isFolder(join(root, "functions")) && !given(args, "--functions")) {
    throw new PlainError(`${root} has no folder "functions": run \`npx syncline init\` to create it`);
  }
  const runtime = openRuntime();
  const wantsVite = !given(args, "--static") && usesVite(root);
  await using vite = wantsVite ? await openViteServer(root) : null;
  const flags = [
    ...["--dev", "--skip-type-check"],
    ...environment(root, args),
    ...frontend({ root, vite: vite?.url ?? null, args }),
  ];
  await using server = startServer(runtime, { root, args: ["serve", ...flags, ...args] });
  // Runs in parallel to the server process.
  const broken = vite?.start().then(() => new Promise<never>(() => {}));
  return await (broken === undefined ? server.ended : Promise.race([server.ended, broken]));
}

/** Longest wait for the server's first output before the type checker starts. */
const TYPES_AFTER_MS = 10_000;

interface DevServer extends AsyncDisposable {
  readonly ended: Promise<number>;
}

/** Starts the server, then the type checker, because the server needs the CPU first. Disposing it stops both. */
function startServer(
  runtime: Runtime,
  { root, args }: { readonly root: string; readonly args: readonly string[] },
): DevServer {
  const server = startDeno(runtime, { set: "serve", args, cwd: root, stdio: ["inherit", "pipe", "inherit"] });
  const over = ended(server);
  const beside: (Disposable | null)[] = [guard(server.pid)];
  const watch = () => {
    stopWaiting();
    const types = watchTypes(root);
    beside.push(types, guard(types?.pid));
  };
  const stopWaiting = () => {
    clearTimeout(late);
    server.stdout?.off("data", watch);
  };
  // The server prints nothing if the app cannot be loaded, which a type error may explain.
  const late = setTimeout(watch, TYPES_AFTER_MS);
  server.stdout?.once("data", watch);
  server.stdout?.pipe(process.stdout, { end: false });
  return {
    ended: over,
    async [Symbol.asyncDispose]() {
      stopWaiting();
      for (const each of beside) each?.[Symbol.dispose]();
      server.kill();
      await over.catch(() => {});
    },
  };
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

/** Whether the app's page comes from Vite itself. A framework that renders on a server has no `index.html`, and a dev server of its own. */
function usesVite(root: string): boolean {
  const { dependencies, devDependencies } = readManifest(root);
  return "vite" in { ...dependencies, ...devDependencies } && existsSync(join(root, "index.html"));
}

/** The variables of `ctx.env`: those in `.env`, unless another file is named. */
function environment(root: string, args: readonly string[]): string[] {
  // An empty variable counts as unset, as in the server.
  const isNamed = given(args, "--env-file") || Boolean(process.env["SYNCLINE_ENV_FILE"]);
  return !isNamed && existsSync(join(root, ".env")) ? ["--env-file", ".env"] : [];
}

/** The source of the frontend: Vite, or a folder of static files. */
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

/** Stops a process if this one ends without doing so: the guard's pipe closes. Disposing it stops only the guard. */
function guard(pid: number | undefined): Disposable | null {
  if (process.platform === "win32" || pid === undefined) return null;
  const script = `trap '' INT TERM HUP; cat >/dev/null; kill -TERM ${pid} 2>/dev/null`;
  const watcher = spawn("sh", ["-c", script], { stdio: ["pipe", "ignore", "ignore"] });
  watcher.unref();
  return { [Symbol.dispose]: () => void watcher.kill("SIGKILL") };
}
