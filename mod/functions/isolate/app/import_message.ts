/** Rewrites the runtime's import errors into advice on how to import a file or package. */

/** Reasons why imports fail, by specifier. Set before the app is loaded. */
let refusals: Readonly<Record<string, string>> = {};

/** Sets the reasons that explain failed imports. */
export function explainImports(reasons: Readonly<Record<string, string>>): void {
  refusals = reasons;
}

const NOT_MAPPED = /^Import "([^"]*)" not a dependency(?: and not in import map from "([^"]*)")?/;
const OTHER_REGISTRY =
  /^(?:Failed loading \S+ for package "|The lockfile is out of date[^]*\+\s+"(?:npm|jsr):)((?:@[^"@\s/]+\/)?[^"@\s/]+)/;
const LATE_REGISTRY =
  /^(?:The lockfile is out of date|JSR package manifest for |Failed loading \S+ for package ")/;
const OURS = /^Blocked by null entry for /;
/** A runtime flag that users cannot set. */
const SWITCH = " or run with --sloppy-imports";
const FOLDER = /^\[ERR_UNSUPPORTED_DIR_IMPORT\] Directory import '([^']*)'/;
const REMOTE = /^Requires import access to "/;

const OWN_WAYS =
  "app code imports its own files by relative path, and packages that are installed in its folder by their names";

/** Rewrites the message of an import error. Other messages are returned unchanged. */
export function importMessage(message: string): string {
  const [, specifier, from = ""] = NOT_MAPPED.exec(message) ?? [];
  if (specifier !== undefined) {
    const importer = from.includes("/node_modules/") ? `, which ${from} imports` : "";
    if (Object.hasOwn(refusals, specifier)) {
      return `cannot import "${specifier}"${importer}: ${refusals[specifier]}`;
    }
    return `cannot find "${specifier}"${importer}: packages are installed in the app's folder, beside or above the functions folder (${
      install(specifier)
    }); the app's own files are imported by relative path`;
  }
  if (OURS.test(message)) return `cannot import a file of the server or of another program: ${OWN_WAYS}`;
  const [, folder] = FOLDER.exec(message) ?? [];
  if (folder !== undefined) {
    return `"${folder}" is a folder: name the file in it, such as "${folder}/index.ts"`;
  }
  if (REMOTE.test(message)) return `cannot import from the network: ${OWN_WAYS}`;
  const [, name] = OTHER_REGISTRY.exec(message) ?? [];
  return name === undefined
    ? message.replaceAll(SWITCH, "")
    : `cannot import an "npm:" or "jsr:" address: install the package in the app's folder (${
      install(name)
    }) and import it by its name`;
}

/** After this error, the runtime refuses to load anything new. */
const SPOILING = /^The lockfile is out of date/;

let spoiled = false;

/** Whether an import in a call has made the isolate unable to load anything new. */
export function importsSpoiled(): boolean {
  return spoiled;
}

/** {@linkcode importMessage} for `import()` in a call, where the runtime may name the package of an earlier import. */
export function lateImportMessage(message: string): string {
  spoiled ||= SPOILING.test(message);
  return LATE_REGISTRY.test(message)
    ? `cannot import an "npm:" or "jsr:" address, nor anything new after that: ${OWN_WAYS}`
    : importMessage(message);
}

function install(specifier: string): string {
  const [first = "", second = ""] = specifier.split("/");
  return `npm install ${first.startsWith("@") ? `${first}/${second}` : first}`;
}
