/** Checks what a bundle contains: only files of the app and its packages, and only modules that isolates provide. */
import { isBuiltin } from "node:module";
import { dirname, join, resolve } from "node:path";
import { packageLimits } from "../limits.ts";
import { authorName, BundleFailure, isBare, missingText, packageOf } from "./bundle_errors.ts";
import { isInside } from "./package_roots.ts";

/** The files of a bundle by path, relative to the parent of the functions folder, as the bundler reports them. */
export type BundleInputs = Readonly<
  Record<string, { readonly bytes: number; readonly imports: readonly BundleImport[] }>
>;

export interface BundleImport {
  /** A path like those of the files, or the specifier of an external module. */
  readonly path: string;
  readonly kind: string;
  readonly external?: true;
  /** The specifier. */
  readonly original?: string;
}

export interface InputRules {
  readonly functionsDir: string;
  /** Folders that may contain files of the app. */
  readonly roots: readonly string[];
  /** Files that are not the app's. */
  readonly ignored: readonly string[];
}

interface Import extends BundleImport {
  readonly from: string;
}

/** Returns the absolute paths of all sources. @throws BundleFailure */
export function checkInputs(inputs: BundleInputs, rules: InputRules): string[] {
  const { functionsDir, roots, ignored } = rules;
  const absolute = (path: string) => resolve(dirname(functionsDir), path);
  const files = Object.entries(inputs).map(([path, input]) => ({ ...input, path: absolute(path) }))
    .filter(({ path }) => !ignored.includes(path));
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (files.length > packageLimits.filesMax || bytes > packageLimits.bytesMax) {
    throw new BundleFailure(
      `The app and its packages have more than ${packageLimits.filesMax} files or ${packageLimits.bytesMax} bytes of code`,
    );
  }
  const declared = declaredPackages(functionsDir);
  for (const { path: from, imports } of files) {
    for (const found of imports) {
      const target = absolute(found.path);
      if (found.external) checkExternal({ ...found, from }, rules);
      else if (!ignored.includes(target) && !isEmbedded(found.path)) {
        if (!isInside(target, roots)) throw outside({ ...found, from }, { target, functionsDir });
        if (isOwn(from, functionsDir)) {
          checkSpelling({ ...found, from }, functionsDir);
          if (target.includes("/node_modules/")) {
            checkDeclared({ ...found, from }, { declared, functionsDir });
          }
        }
      }
    }
  }
  const sources = Object.keys(inputs).filter((path) => !isEmbedded(path)).map(absolute)
    .filter((path) => !ignored.includes(path));
  // Imports with computed names do not list the files that they include.
  const other = sources.find((path) => !isInside(path, roots));
  if (other !== undefined) {
    throw new BundleFailure(
      `${other} is outside the project of the app: an import with a computed name includes it`,
    );
  }
  return sources;
}

/** Whether a source is a `data:` URL. */
function isEmbedded(path: string): boolean {
  return path.startsWith("<data:");
}

/** Whether an import has a computed name, such as `./locales/*.js`: the bundle contains all files that match. */
function isPattern(path: string): boolean {
  return /^\.{1,2}\/.*\*/.test(path);
}

/** External modules are those that isolates provide. Others fail when the code that needs them runs. */
function checkExternal(found: Import, { functionsDir }: InputRules): void {
  const { path, kind, from } = found;
  if (
    kind !== "import-statement" || path.startsWith("node:") || isBuiltin(path) ||
    path === "syncline/server" || path === "<runtime>" || isPattern(path)
  ) {
    return;
  }
  if (path.endsWith(".node")) {
    throw failure(found, functionsDir, `${path} is a native addon, which functions cannot load`);
  }
  // The bundler lists imports of TypeScript that are not used and therefore removed. It rejects missing ones by itself.
  if (isOwn(from, functionsDir) && !URL.canParse(path)) return;
  const importer = isOwn(from, functionsDir) ? "" : `, which ${from} imports`;
  throw failure(found, functionsDir, missingText(path, importer));
}

/** Own files are named in full, as type checks and tests require. */
function checkSpelling(found: Import, functionsDir: string): void {
  const { original = "", from } = found;
  if (!/^\.{1,2}(?:\/|$)/.test(original)) return;
  const named = statOf(resolve(dirname(from), original.replace(/[?#].*$/s, "")));
  if (named?.isFile) return;
  const path = authorName(resolve(dirname(functionsDir), found.path), functionsDir);
  throw failure(
    found,
    functionsDir,
    named?.isDirectory
      ? `"${original}" is a folder: name the file in it, such as "${original.replace(/\/$/, "")}/index.ts"`
      : `cannot find the file "${original}": name it with its extension (${path})`,
  );
}

/** The app declares the packages that it imports, so that they are not there by chance. Workspaces link others. */
function checkDeclared(
  found: Import,
  { declared, functionsDir }: {
    readonly declared: ReadonlySet<string> | null;
    readonly functionsDir: string;
  },
): void {
  const { original = "" } = found;
  if (declared === null || !isBare(original) || original.startsWith("#")) return;
  const name = packageOf(original);
  if (declared.has(name)) return;
  throw failure(
    found,
    functionsDir,
    `the package "${name}" is installed for other packages only: add it to the app's package.json (npm install ${name})`,
  );
}

/** Returns the names in all `package.json` of the functions folder and above it; `null` if there is none. */
function declaredPackages(functionsDir: string): ReadonlySet<string> | null {
  let declared: Set<string> | null = null;
  for (let folder = functionsDir;; folder = dirname(folder)) {
    const fields = statOf(join(folder, "package.json"))?.isFile
      ? packageFields(join(folder, "package.json"))
      : null;
    if (fields !== null) {
      declared ??= new Set(["zod"]);
      const { name, dependencies, devDependencies, optionalDependencies, peerDependencies } = fields;
      const all = { ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies };
      for (const declaredName of [name ?? "", ...Object.keys(all)]) declared.add(declaredName);
    }
    if (folder === dirname(folder)) return declared;
  }
}

interface PackageFields {
  readonly name?: string;
  readonly dependencies?: object;
  readonly devDependencies?: object;
  readonly optionalDependencies?: object;
  readonly peerDependencies?: object;
}

/** Returns `null` for a file that is not valid or that this user cannot read. */
function packageFields(path: string): PackageFields | null {
  try {
    return JSON.parse(Deno.readTextFileSync(path)) as PackageFields | null;
  } catch {
    return null;
  }
}

function outside(
  found: Import,
  { target, functionsDir }: { readonly target: string; readonly functionsDir: string },
): BundleFailure {
  const { original = "", from } = found;
  if (!original.startsWith(".")) {
    return failure(
      found,
      functionsDir,
      `cannot import "${original}": it is a link to ${target}, which is outside the project of the app`,
    );
  }
  const path = resolve(dirname(from), original);
  const isLink = path !== target && statOf(path)?.isFile === true;
  const advice = isOwn(from, functionsDir)
    ? "the functions folder: move or copy it there, or install it as a package"
    : "the project of the app";
  return failure(
    found,
    functionsDir,
    isLink ? `${path} is a link to ${target}, which is outside ${advice}` : `${target} is outside ${advice}`,
  );
}

/** Names the line of an import, which the bundler does not report. */
function failure({ from, original, path }: Import, functionsDir: string, message: string): BundleFailure {
  const specifier = original ?? path;
  const lines = statOf(from) === null ? [] : Deno.readTextFileSync(from).split("\n");
  const columns = lines.map((text) =>
    Math.max(text.indexOf(`"${specifier}"`), text.indexOf(`'${specifier}'`))
  );
  const line = columns.findIndex((column) => column >= 0);
  const place = line < 0 ? "" : `:${line + 1}:${(columns[line] ?? 0) + 1}`;
  return new BundleFailure(`${authorName(from, functionsDir)}${place}: ${message}`);
}

function isOwn(path: string, functionsDir: string): boolean {
  return isInside(path, [functionsDir]) && !path.slice(functionsDir.length).includes("/node_modules/");
}

function statOf(path: string): Deno.FileInfo | null {
  try {
    return Deno.statSync(path);
  } catch {
    return null;
  }
}
