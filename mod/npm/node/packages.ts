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
  const quiet = name === "npm" ? ["--no-audit", "--no-fund", "--loglevel=error"] : [];
  const { status, error } = spawnSync(name, ["install", ...quiet], {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit"],
    shell: process.platform === "win32",
  });
  if (status === 0) return;
  throw new PlainError(
    `The files are in ${folder}, but \`${name} install\` failed${
      error ? ` (${error.message})` : ""
    }: run it there again`,
  );
}
