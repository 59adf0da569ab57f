/** Turns the bundler's report into errors for authors: file, line and advice. */
import { dirname, join } from "node:path";
import { isInside, nameBelow } from "./package_roots.ts";

/** Thrown if an app cannot be bundled. The message is one line. */
export class BundleFailure extends Error {
  override readonly name = "BundleFailure";
}

interface Problem {
  readonly text: string;
  /** Path, relative to the folder in which the bundler runs. */
  readonly file: string | null;
  readonly line: number;
  /** From 1. */
  readonly column: number;
  /** Explanations below the source line. */
  readonly notes: string;
}

const UNRESOLVED = /^Could not resolve "(.*)"$/;
const IGNORED_IMPORT = /^Ignoring this import because /;
const NO_LOADER = /^No loader is configured for "(\.[\w.-]+|)" files: /;

/**
 * Returns the flags that solve all errors of a report, or `null` if it has others. Packages that a package imports and that are not
 * installed are left out: they may be optional, and fail when they are used. So are files such as a README in a folder from which a
 * package requires a file by a computed name. If the app imports a package for its effects although the package declares to have
 * none, such declarations are ignored, as Node ignores them.
 */
export function retryFlags(report: string): string[] | null {
  const flags: string[] = [];
  for (const { text, file } of problemsIn(report)) {
    if (IGNORED_IMPORT.test(text)) {
      flags.push("--ignore-annotations");
      continue;
    }
    if (file?.includes("node_modules/") !== true) return null;
    const [, name] = UNRESOLVED.exec(text) ?? [];
    const [, extension] = NO_LOADER.exec(text) ?? [];
    if (name !== undefined && isBare(name) && !name.includes("*")) flags.push(`--external:${name}`);
    else if (extension !== undefined) flags.push(`--loader:${extension}=empty`);
    else return null;
  }
  return flags.length === 0 ? null : flags;
}

/** Returns the error for the first problem of a report. Quotes only files below a folder. */
export function failureOf(
  report: string,
  { functionsDir, quoted }: { readonly functionsDir: string; readonly quoted: string },
): BundleFailure {
  const [problem, ...others] = problemsIn(report);
  if (problem === undefined) {
    if (/out of memory/.test(report)) return new BundleFailure("The bundler ran out of memory");
    const reason = report.trim().split("\n").at(-1) ?? "";
    return new BundleFailure(
      reason === ""
        ? "The bundler took too long or was ended"
        : `The bundler failed: ${reason.slice(0, 500)}`,
    );
  }
  const { file, line, column } = problem;
  const path = file === null ? null : join(dirname(functionsDir), file);
  if (path !== null && !isInside(path, [quoted])) {
    return new BundleFailure(`${path} is outside the project of the app`);
  }
  const place = path === null ? "" : `${authorName(path, functionsDir)}:${line}:${column}: `;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return new BundleFailure(`${place}${explained(problem)}${more}`);
}

/** Returns a file's name below the functions folder, or its absolute path. */
export function authorName(path: string, functionsDir: string): string {
  return path.startsWith(`${functionsDir}/`) ? nameBelow(functionsDir, path) : path;
}

/** Explains an import that leads to nothing. */
export function missingText(specifier: string, importer = ""): string {
  const [, registry] = /^(?:npm|jsr):\/*((?:@[^/@]+\/)?[^/@]*)/.exec(specifier) ?? [];
  if (registry !== undefined) {
    return `cannot import an "npm:" or "jsr:" address: install the package in the app's folder (npm install ${registry}) and import it by its name`;
  }
  if (/^https?:/.test(specifier)) {
    return "cannot import from the network: app code imports its own files by relative path, and packages that are installed in its folder by their names";
  }
  if (!isBare(specifier)) return `cannot find the file "${specifier}"${importer}`;
  return `cannot find "${specifier}"${importer}: packages are installed in the app's folder, beside or above the functions folder (npm install ${
    packageOf(specifier)
  }); the app's own files are imported by relative path`;
}

function explained({ text, notes }: Problem): string {
  const [, specifier] = UNRESOLVED.exec(text) ?? [];
  // Ends with the bundler's name of an error that is a warning otherwise.
  if (specifier === undefined) return text.replace(/ \[[\w-]+\]$/, "");
  const [, kept] = /^ {2}(The path "[^"]*" is not (?:currently )?exported by package "[^"]*")/m.exec(notes) ??
    [];
  return kept === undefined
    ? missingText(specifier)
    : `cannot import "${specifier}": ${kept[0]?.toLowerCase()}${kept.slice(1)}`;
}

function problemsIn(report: string): Problem[] {
  return report.split(/^(?:✘|X) \[ERROR\] /m).slice(1).map((part) => {
    const [text = ""] = part.split("\n", 1);
    const [, file, line, column] = /^\n {4}(.+):(\d+):(\d+):$/m.exec(part.slice(text.length)) ?? [];
    return {
      text,
      file: file ?? null,
      line: Number(line ?? 0),
      column: Number(column ?? 0) + 1,
      notes: part.slice(text.length),
    };
  });
}

/** Whether a specifier names a package. */
export function isBare(specifier: string): boolean {
  return !/^(?:\.{0,2}\/|\.{1,2}$|[a-z][a-z0-9+.-]*:)/i.test(specifier);
}

/** Returns the name of the package of a specifier. */
export function packageOf(specifier: string): string {
  const [first = "", second = ""] = specifier.split("/");
  return first.startsWith("@") ? `${first}/${second}` : first;
}
