/** Rewrites the runtime's errors about `import()` that bypass the bundle, such as those of `npm:` addresses in generated code. */

const OURS = /^Blocked by null entry for /;
const REMOTE = /^Requires import access to "/;
const REGISTRY =
  /^(?:The lockfile is out of date|JSR package manifest for |Failed loading \S+ for package ")/;
/** After this error, the runtime refuses to load anything new. */
const SPOILING = /^The lockfile is out of date/;

const OWN_WAYS =
  "app code imports its own files by relative path, and packages that are installed in its folder by their names";

let spoiled = false;

/** Whether an import in a call has made the isolate unable to load anything new. */
export function importsSpoiled(): boolean {
  return spoiled;
}

/** Rewrites the message of an import error. Other messages are returned unchanged. */
export function importMessage(message: string): string {
  spoiled ||= SPOILING.test(message);
  if (REGISTRY.test(message)) {
    return `cannot import an "npm:" or "jsr:" address, nor anything new after that: ${OWN_WAYS}`;
  }
  if (OURS.test(message)) return `cannot import a file of the server or of another program: ${OWN_WAYS}`;
  return REMOTE.test(message) ? `cannot import from the network: ${OWN_WAYS}` : message;
}
