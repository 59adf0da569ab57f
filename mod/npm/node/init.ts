/** `syncline init`: adds functions, instructions for coding agents and the configuration of their MCP server to an existing project. */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { install, manager } from "./packages.ts";
import { PlainError } from "./plain_error.ts";
import { type Manifest, readManifest } from "./project.ts";
import { ownVersion, templateFolder } from "./scaffold.ts";

/** Files copied from the smallest template. */
const PARTS = ["functions", "AGENTS.md", ".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];
const DATA = "/data/";

/** Returns the exit code. */
export function init(args: readonly string[]): Promise<number> {
  const root = process.cwd();
  const without = args.filter((arg) => arg !== "--no-install");
  if (without.length > 0) {
    throw new PlainError(`Unknown argument "${without[0]}": syncline init only accepts --no-install`);
  }
  const { text, script } = check(root);
  const from = templateFolder("server");
  const added: string[] = [];
  try {
    for (const part of PARTS) {
      if (existsSync(join(root, part))) continue;
      added.push(join(root, part));
      cpSync(join(from, part), join(root, part), { recursive: true });
    }
    ignoreData(root);
    writeFileSync(join(root, "package.json"), text);
  } catch (error) {
    for (const path of added) rmSync(path, { recursive: true, force: true });
    throw error;
  }
  const tool = manager();
  if (!args.includes("--no-install")) install(root, tool);
  process.stdout.write(
    `\nThe app's functions are in functions/. To start the development server:\n\n  ${tool} run ${script}\n\n`,
  );
  return Promise.resolve(0);
}

/** Returns the new `package.json`, and the name of the script that starts the server. Throws a `PlainError` if impossible. */
function check(root: string): { readonly text: string; readonly script: string } {
  if (!existsSync(join(root, "package.json"))) {
    throw new PlainError(
      `${root} has no package.json: create a new app with \`npm create syncline@latest my-app\``,
    );
  }
  if (existsSync(join(root, "functions"))) {
    throw new PlainError(`${root} already has a folder "functions": run \`npx syncline dev\` to serve it`);
  }
  const manifest = readManifest(root);
  const server = readManifest(templateFolder("server"));
  const script = freeScript(manifest);
  const added = {
    ...manifest,
    scripts: { ...manifest.scripts, [script]: "syncline dev" },
    dependencies: {
      ...server.dependencies,
      ...manifest.dependencies,
      syncline: `^${ownVersion()}`,
    },
  };
  const indent = /^[ \t]+/m.exec(readFileSync(join(root, "package.json"), "utf8"))?.[0] ?? "  ";
  return { text: `${JSON.stringify(added, null, indent)}\n`, script };
}

/** Returns `dev` if that script does not exist or only starts Vite, which `syncline dev` does as well. */
function freeScript({ scripts = {} }: Manifest): string {
  const { dev } = scripts;
  return dev === undefined || /^vite(?: dev| serve)?$/.test(dev) ? "dev" : "dev:syncline";
}

/** Excludes the data folder from version control. */
function ignoreData(root: string): void {
  const path = join(root, ".gitignore");
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (text.split(/\r?\n/).some((line) => /^\/?data\/?$/.test(line.trim()))) return;
  writeFileSync(path, `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${DATA}\n`);
}
