/** The package manager that the user came with, and installations with it. */
import { spawnSync } from "node:child_process";
import process from "node:process";
import { PlainError } from "./plain_error.ts";

const MANAGERS = ["npm", "pnpm", "yarn", "bun"] as const;
export type Manager = (typeof MANAGERS)[number];

/** The one that runs this program; npm when nothing tells. */
export function manager(): Manager {
  const agent = process.env["npm_config_user_agent"] ?? "";
  return MANAGERS.find((name) => agent.startsWith(`${name}/`)) ?? "npm";
}

/** Installs what the `package.json` of a folder names. Throws a `PlainError` that says how to go on. */
export function install(folder: string, name: Manager): void {
  // What npm was told of packages before is believed first: asking again of each takes as long as the rest.
  if (name === "npm" && runInstall(folder, { name, flags: ["--prefer-offline", "--loglevel=silent"] }).done) {
    return;
  }
  const { done, reason } = runInstall(folder, { name, flags: name === "npm" ? ["--loglevel=error"] : [] });
  if (done) return;
  throw new PlainError(
    `The files are in ${folder}, but \`${name} install\` failed${reason}: run it there again`,
  );
}

function runInstall(
  folder: string,
  { name, flags }: { readonly name: Manager; readonly flags: readonly string[] },
): { readonly done: boolean; readonly reason: string } {
  const quiet = name === "npm" ? ["--no-audit", "--no-fund"] : [];
  const { command, args, shell } = startOf(name, ["install", ...quiet, ...flags]);
  const { status, error } = spawnSync(command, args, {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit"],
    shell,
  });
  return { done: status === 0, reason: error ? ` (${error.message})` : "" };
}

/**
 * How a package manager is started. On Windows it is a script (`npm.cmd`), which only a shell runs; that gets one text, as
 * Node warns of arguments beside it. None of them has anything in it that a shell reads as more than a word.
 */
export function startOf(
  name: Manager,
  args: readonly string[],
  platform: NodeJS.Platform = process.platform,
): { readonly command: string; readonly args: readonly string[]; readonly shell: boolean } {
  if (platform !== "win32") return { command: name, args, shell: false };
  return { command: [name, ...args].join(" "), args: [], shell: true };
}
