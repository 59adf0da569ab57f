/** Versions of format 1 (sources with an import table, from 0.1), bundled when first loaded. */
import { dirname, join, relative } from "node:path";
import { removeIfThere, statIfThere, syncFolder } from "../../kit/durable_files.ts";
import { bundleApp } from "../packages/mod.ts";
import { sumOf } from "./file_sums.ts";
import type { OldCode, OldTarget } from "./manifest.ts";
import { newFolder } from "./version_files.ts";

/** The name of the bundle in the code folder. The author's files there have other names. */
export const OLD_BUNDLE_NAME = "syncline-bundle.js";

/** Writes the bundle and its checksum, unless they exist and match. */
export async function bundleOldVersion(
  versionsDir: string,
  { functions, code, files }: {
    readonly functions: string;
    readonly code: OldCode;
    readonly files: Readonly<Record<string, unknown>>;
  },
  { folder, bundle }: { readonly folder: string; readonly bundle: string },
): Promise<void> {
  const sumPath = `${bundle}.sha256`;
  if (await statIfThere(bundle) !== null && await statIfThere(sumPath) !== null) {
    if (sumOf(await Deno.readFile(bundle)).sum === await Deno.readTextFile(sumPath)) return;
  }
  // The bundler finds packages by files that these versions lack, so that it gets relative paths instead.
  const temporary = await newFolder(versionsDir);
  using _lock = temporary.manifest;
  const work = join(await Deno.realPath(temporary.path), "code");
  try {
    for (const path of Object.keys(files)) {
      if (!/\.(?:[cm]?[jt]sx?|json)$/.test(path)) continue;
      await Deno.mkdir(dirname(join(work, path)), { recursive: true });
      const text = await Deno.readTextFile(join(folder, path));
      await Deno.writeTextFile(join(work, path), path.endsWith(".json") ? text : withPaths(text, path, code));
    }
    const made = await bundleApp({ functionsDir: join(work, functions), dataDir: folder, within: work });
    await Deno.writeFile(join(work, OLD_BUNDLE_NAME), made.code, { mode: 0o400 });
    await syncFolder(join(work, OLD_BUNDLE_NAME));
    await removeIfThere(sumPath);
    await Deno.rename(join(work, OLD_BUNDLE_NAME), bundle);
    await Deno.writeTextFile(sumPath, sumOf(made.code).sum);
  } finally {
    await removeIfThere(temporary.path);
  }
}

const SPECIFIER = /(\b(?:from|import)\s*\(?\s*|\brequire(?:\.resolve)?\s*\(\s*)(["'`])([^"'`\\\n$]+)\2/g;

/** Replaces the names of packages by relative paths. */
function withPaths(text: string, path: string, { scopes, table }: OldCode): string {
  const file = table.files[path];
  const scope = Object.keys(scopes).filter((name) => name === "." || `./${path}`.startsWith(`${name}/`))
    .toSorted((a, b) => b.length - a.length)[0] ?? "";
  return text.replace(SPECIFIER, (whole, before: string, quote: string, specifier: string) => {
    const target = before.startsWith("require")
      ? targetOf(file?.requires[specifier])
      : targetOf(file?.imports[specifier]) ?? addressOf(scopes[scope]?.[specifier]);
    if (target === null || target.split("/").includes("..")) return whole;
    const place = relative(dirname(path), target);
    return `${before}${quote}${
      /^node:/.test(target) ? target : place.startsWith(".") ? place : `./${place}`
    }${quote}`;
  });
}

function targetOf(target: OldTarget | undefined): string | null {
  return target?.file ?? addressOf(target?.module);
}

/** The path of a module or CommonJS file, or the name of a module of the runtime. */
function addressOf(address: string | undefined): string | null {
  if (address === undefined) return null;
  if (address.startsWith("./")) return address.slice(2);
  if (!address.startsWith("data:")) return null;
  const source = address.replaceAll("%23", "#").replaceAll("%25", "%");
  const [, builtin] = /^data:text\/javascript,export\*from"(node:[^"]+)"/.exec(source) ?? [];
  if (builtin !== undefined) return builtin;
  const [, path] = /\]\(("(?:[^"\\]|\\.)*")\),n=/.exec(source) ?? [];
  return path === undefined ? null : JSON.parse(path) as string;
}
