/** The program's folder. A module of its own, so that tests can replace it. */

/** Child processes run modules in this folder, and data files are read from it. */
export const programRoot: URL = new URL("../../../", import.meta.url);
