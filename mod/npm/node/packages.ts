/** Detects the user's package manager and installs packages with it. */
import { spawnSync } from "node:child_process";
import process from "node:process";
import { PlainError } from "./plain_error.ts";

const MANAGERS = ["npm", "pnpm", "yarn", "bun"] as const;
export type Manager = (typeof MANAGERS)[number];

/** Returns the package manager that runs this program; npm if unknown. */
export function manager(): Manager {
  const agent = process.env["npm_config_user_agent"] ?? "";
  return MANAGERS.find((name) => agent.startsWith(`${name}/`)) ?? "npm";
}

/** Installs the dependencies of a folder. Throws a `PlainError` that says how to continue. */
export function install(folder: string, name: Manager): void {
  // Prefer cached package metadata: revalidating it takes as long as the installation itself.
  if (name === "npm" && runInstall(folder, { name, flags: ["--prefer-offline", "--loglevel=silent"] }).done) {
    return;
  }
  const { done, reason } = runInstall(folder, { name, flags: name === "npm" ? ["--loglevel=error"] : [] });
  if (done) return;
  throw new PlainError(
    `The files are in ${folder}, but \`${name} install\` failed${reason}: run it again in that folder`,
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

/** Returns the command of a package manager; on Windows a script for a shell, as one string without special characters. */
export function startOf(
  name: Manager,
  args: readonly string[],
  platform: NodeJS.Platform = process.platform,
): { readonly command: string; readonly args: readonly string[]; readonly shell: boolean } {
  if (platform !== "win32") return { command: name, args, shell: false };
  return { command: [name, ...args].join(" "), args: [], shell: true };
}
