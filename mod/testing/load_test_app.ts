/** Loads the app under test: from a folder, as the server does, or from modules imported by the test. */
import { authModules } from "../auth/isolate_functions/mod.ts";
import {
  type AppModule,
  assembleApp,
  fileUrl,
  loadApp,
  type LoadedApp,
  rateLimitModule,
} from "../functions/isolate/mod.ts";
import { schedulerModules } from "../scheduler/isolate_functions/mod.ts";
import { storageFeature, storageModules } from "../storage/isolate_functions/mod.ts";
import type { StorageSettings } from "../storage/mod.ts";
import type { TestServerOptions } from "./test_types.ts";
import { testFunctions } from "./test_system.ts";

/** Tables and functions of the service that apps can refer to. */
const systemModules = [...authModules, ...schedulerModules, ...storageModules, rateLimitModule];

/** Settings for file URLs, which refer to the test server. */
export const testStorageSettings: StorageSettings = {
  urlKey: "A".repeat(43),
  baseUrl: "http://test.invalid",
};

/** Settings that system functions read. */
const settings: Readonly<Record<string, unknown>> = { [storageFeature]: testStorageSettings };

/** Loads an app with the functions of the test server. Throws `BrokenAppError`. */
export async function loadTestApp(
  { functionsDir, modules }: Pick<TestServerOptions, "functionsDir" | "modules">,
): Promise<{ readonly app: LoadedApp; readonly functionsUrl: string }> {
  for (const { settings: wanted } of systemModules) wanted?.configure(settings[wanted.name]);
  if (modules !== undefined) {
    const list: AppModule[] = Object.entries(modules).map(([path, exports]) => ({
      name: `${path}.ts`,
      modulePath: path === "index" ? "" : path,
      exports: { ...exports },
    }));
    return { app: withTestFunctions(assembleApp(list, { systemModules, named: [] })), functionsUrl: "" };
  }
  if (functionsDir === undefined) {
    throw new TypeError(
      "createTestServer() needs functionsDir (the app's functions folder) or modules",
    );
  }
  const path = await Deno.realPath(functionsDir);
  return { app: withTestFunctions(await loadApp(path, systemModules)), functionsUrl: fileUrl(path) };
}

function withTestFunctions(app: LoadedApp): LoadedApp {
  const functions = new Map(app.functions);
  for (const added of testFunctions()) functions.set(added.udfPath, added);
  return { ...app, functions };
}
