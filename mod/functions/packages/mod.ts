/** Public API of `mod/functions/packages`. */
export { adHocModule } from "./ad_hoc_module.ts";
export { type AppBundle, BUNDLE_NAME, bundleApp } from "./app_bundle.ts";
export { BundleFailure } from "./bundle_errors.ts";
export { type AppPlace, nameBelow, packageRoots } from "./package_roots.ts";
export { SOURCES_URL } from "../wire/app_sources.ts";
