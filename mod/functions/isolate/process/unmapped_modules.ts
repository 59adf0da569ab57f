/**
 * Modules of the runtime that a static import gets past the import map: it looks for them by the text in the source first.
 * Made at the first such import, while the modules of the app are being linked, they also take the map away from the imports
 * that follow, or end the runtime. So they are made before app code is loaded, with what their stand-ins export.
 */
import process from "node:process";
import { appImporter } from "./import_as_app.ts";

/** Those that app code is refused. A test finds out whether there are others. */
const unmapped = ["node:worker_threads"];

type Exports = Record<PropertyKey, unknown>;

/** Makes these modules export what stands in for them. Called once, before any app code is loaded. */
export async function refuseUnmapped(): Promise<void> {
  const importAsApp = await appImporter();
  for (const specifier of unmapped) {
    // A dynamic import goes by the map.
    const standIn = await importAsApp(specifier);
    // The module exports what stands in this object when it is first imported.
    const exports = process.getBuiltinModule(specifier) as unknown as Exports;
    for (const name of Reflect.ownKeys(exports)) exports[name] = standIn[String(name)];
    Object.freeze(exports);
    const made = await import(specifier) as Exports;
    if (Object.keys(made).some((name) => name !== "default" && made[name] !== standIn[name])) {
      throw new Error(`${specifier} cannot be closed to app code in this version of the runtime`);
    }
  }
}
