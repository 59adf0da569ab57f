/** `syncline init`: functions, a test and a word to agents for a project that is there already. */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { install, manager } from "./packages.ts";
import { PlainError } from "./plain_error.ts";
import { type Manifest, readManifest } from "./project.ts";
import { ownVersion, templateFolder } from "./scaffold.ts";

/** What is copied from the smallest template. */
const PARTS = ["functions", "AGENTS.md"];
const DATA = "/data/";

/** Gives the exit code. */
export function init(args: readonly string[]): Promise<number> {
  const root = process.cwd();
  const without = args.filter((arg) => arg !== "--no-install");
  if (without.length > 0) throw new PlainError(`syncline init takes no "${without[0]}", only --no-install`);
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
    `\nThe app's functions are in functions/. To serve it while you edit:\n\n  ${tool} run ${script}\n\n`,
  );
  return Promise.resolve(0);
}

/** What `package.json` becomes, and the script that serves the app. Throws a `PlainError` where nothing can be added. */
function check(root: string): { readonly text: string; readonly script: string } {
  if (!existsSync(join(root, "package.json"))) {
    throw new PlainError(
      `${root} has no package.json: make a new app with \`npm create syncline@latest my-app\``,
    );
  }
  if (existsSync(join(root, "functions"))) {
    throw new PlainError(`${root} has a folder "functions" already: \`npx syncline dev\` serves it`);
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

/** `dev`, where it is free or does nothing but start Vite, which `syncline dev` starts as well. */
function freeScript({ scripts = {} }: Manifest): string {
  const { dev } = scripts;
  return dev === undefined || /^vite(?: dev| serve)?$/.test(dev) ? "dev" : "dev:syncline";
}

/** Data is not for version control. */
function ignoreData(root: string): void {
  const path = join(root, ".gitignore");
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (text.split(/\r?\n/).some((line) => /^\/?data\/?$/.test(line.trim()))) return;
  writeFileSync(path, `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${DATA}\n`);
}
