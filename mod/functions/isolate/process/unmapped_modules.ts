/**
 * Replaces built-in modules that static imports load without the import map, because the runtime looks for them in the source
 * text first. Loading one while the app's modules are linked also disables the map for later imports, or ends the runtime. So
 * they are loaded before app code, with the exports of their stubs.
 */
import process from "node:process";
import { appImporter } from "./import_as_app.ts";

/** Blocked modules of this kind. A test detects others. */
const unmapped = ["node:worker_threads"];

type Exports = Record<PropertyKey, unknown>;

/** Replaces the exports of these modules. Called once, before app code is loaded. */
export async function refuseUnmapped(): Promise<void> {
  const importAsApp = await appImporter();
  for (const specifier of unmapped) {
    // A dynamic import uses the map.
    const standIn = await importAsApp(specifier);
    // On first import, the module exports the members of this object.
    const exports = process.getBuiltinModule(specifier) as unknown as Exports;
    for (const name of Reflect.ownKeys(exports)) exports[name] = standIn[String(name)];
    Object.freeze(exports);
    const made = await import(specifier) as Exports;
    if (Object.keys(made).some((name) => name !== "default" && made[name] !== standIn[name])) {
      throw new Error(`${specifier} cannot be closed to app code in this version of the runtime`);
    }
  }
}
