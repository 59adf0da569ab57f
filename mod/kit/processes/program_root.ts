/** Where the program stands. Nothing else is in this module: tests put another one in its place. */

/** Its folder: processes are started with modules of it, and files in it are read that are no modules. */
export const programRoot: URL = new URL("../../../", import.meta.url);
