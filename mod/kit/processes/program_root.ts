/** The program's folder and the entry modules of its processes. A module of its own, so that tests can replace it. */

/** Child processes run modules in this folder, and data files are read from it. */
export const programRoot: URL = new URL("../../../", import.meta.url);

/** Folder of the bundles of a clone. Set in these bundles only. */
declare const BUNDLES: string | undefined;

/** Returns the address of the module with which a process starts, which has a bundle in a server that runs from bundles. */
export function entryModule(path: string): URL {
  if (typeof BUNDLES === "undefined") return new URL(path, programRoot);
  return new URL(`${BUNDLES}/${path.replace(/\.ts$/, ".js").replaceAll("/", "_")}`, programRoot);
}
