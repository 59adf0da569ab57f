/** Copies a template into a folder, completely or not at all. */
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hasCode, PlainError } from "./plain_error.ts";
import { renameWithRetries } from "./rename.ts";

/** Folder of the package. This module is bundled into a file of its subfolder. */
const home = fileURLToPath(new URL("..", import.meta.url));

export const templates = ["react", "vue", "svelte", "solid", "plain", "showcase", "server"] as const;
export type Template = (typeof templates)[number];

/** Templates for frameworks other than React. They contain the page only; the rest comes from `react`. */
const pages: readonly Template[] = ["vue", "svelte", "solid"];
/** Files of `react` that do not depend on the framework. */
const shared = [
  "functions",
  "tests",
  "src/style.css",
  ".cursor",
  ".vscode",
  ".mcp.json",
  ".dockerignore",
  "Dockerfile",
  "_gitignore",
];

/** The templates in this package. */
export function templateFolder(template: Template): string {
  return join(home, "templates", template);
}

/** Version of both packages. */
export function ownVersion(): string {
  return (JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { readonly version: string })
    .version;
}

/** Copies the files of a template from the folder of all templates. */
export function copyTemplate(template: Template, { from, to }: Record<"from" | "to", string>): void {
  for (const name of pages.includes(template) ? shared : []) {
    cpSync(join(from, "react", name), join(to, name), { recursive: true });
  }
  cpSync(join(from, template), to, { recursive: true });
}

/** Creates an app in a new or empty folder. On failure, throws a `PlainError` and leaves the folder unchanged. */
export function scaffold(folder: string, template: Template): void {
  const found = contents(folder);
  if (found !== null && found.length > 0) {
    throw new PlainError(
      `${folder} is not empty: choose another name, or run \`npx syncline init\` in it to add Syncline to a project`,
    );
  }
  const parent = dirname(folder);
  mkdirSync(parent, { recursive: true });
  const draft = mkdtempSync(join(parent, ".syncline-"));
  try {
    copyTemplate(template, { from: join(home, "templates"), to: draft });
    // A temporary folder is closed to other users, such as the one of a service.
    chmodSync(draft, 0o777 & ~process.umask());
    // npm renames a .gitignore in packages.
    renameWithRetries({ from: join(draft, "_gitignore"), to: join(draft, ".gitignore") });
    const manifest = join(draft, "package.json");
    writeFileSync(manifest, appManifest(readFileSync(manifest, "utf8"), { name: basename(folder) }));
    moveInto(draft, folder, { there: found !== null });
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Moves the contents. An existing folder is kept, because it may be the working directory. */
function moveInto(draft: string, folder: string, { there }: { readonly there: boolean }): void {
  if (!there) return renameWithRetries({ from: draft, to: folder });
  for (const name of readdirSync(draft)) {
    renameWithRetries({ from: join(draft, name), to: join(folder, name) });
  }
}

/** Lists a folder, ignoring version control files; `null` if it does not exist. */
function contents(folder: string): string[] | null {
  try {
    return readdirSync(folder).filter((name) => ![".git", ".DS_Store"].includes(name));
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    if (hasCode(error, "ENOTDIR")) {
      throw new PlainError(`${folder} is a file: choose another name`, { cause: error });
    }
    throw error;
  }
}

/** Turns the template's `package.json` into the app's. */
function appManifest(text: string, { name }: { readonly name: string }): string {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, "-").replace(/^[._-]+/, "");
  const manifest = JSON.parse(text) as { dependencies: Record<string, string> };
  manifest.dependencies["syncline"] = `^${ownVersion()}`;
  return `${JSON.stringify({ ...manifest, name: plain || "app" }, null, 2)}\n`;
}
