/** Loads the app of a test in Node as a server does: bundled, with the npm packages that are installed for it. */
import { join } from "node:path";
import { fileUrl, loadBundle } from "../../functions/isolate/mod.ts";
import { BUNDLE_NAME, bundleApp, nameBelow, SOURCES_URL } from "../../functions/packages/mod.ts";
import type { FolderLoader } from "../load_test_app.ts";

/** A bundle that this process has imported. Its file has been removed. */
interface Imported {
  readonly path: string;
  readonly functionsUrl: string;
}

/** By functions folder, so that the servers of one process share modules. */
const imported = new Map<string, Promise<Imported>>();

/** Throws `BundleFailure`, or `BrokenAppError`. */
export const loadBundled: FolderLoader = async (functionsDir, systemModules) => {
  let first = imported.get(functionsDir);
  if (first === undefined) imported.set(functionsDir, first = importBundle(functionsDir));
  const { path, functionsUrl } = await first;
  return { app: await loadBundle(path, systemModules), functionsUrl };
};

async function importBundle(functionsDir: string): Promise<Imported> {
  const folder = await Deno.makeTempDir({ prefix: "syncline-test-" });
  try {
    const bundle = await bundleApp({ functionsDir, dataDir: folder });
    const path = join(folder, BUNDLE_NAME);
    await Deno.writeFile(path, bundle.code);
    await import(fileUrl(path));
    return { path, functionsUrl: SOURCES_URL + nameBelow(bundle.folder, functionsDir) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
