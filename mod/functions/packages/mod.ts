/** Public API of `mod/functions/packages`. */
export { type AppBundle, BUNDLE_NAME, bundleApp } from "./app_bundle.ts";
export { BundleFailure } from "./bundle_errors.ts";
export { type AppPlace, packageRoots } from "./package_roots.ts";
