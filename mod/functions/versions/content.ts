/** The content of a version that is made from a functions folder: its bundle. */
import { type AppBundle, type AppPlace, BUNDLE_NAME, bundleApp } from "../packages/mod.ts";
import { nameBelow } from "../packages/paths.ts";
import { sumOf } from "./file_sums.ts";
import type { VersionContent } from "./manifest.ts";

export async function bundleContent(
  place: AppPlace,
): Promise<{ readonly content: VersionContent; readonly bundle: AppBundle }> {
  const bundle = await bundleApp(place);
  const functions = nameBelow(bundle.folder, place.functionsDir);
  return { content: { functions, files: { [BUNDLE_NAME]: sumOf(bundle.code) } }, bundle };
}
