/** What other rooms use of packages. */
export { type AppPlace, packageRoots } from "./package_roots.ts";
