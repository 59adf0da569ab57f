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
import type { SystemModule } from "../functions/system_module.ts";
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

/** An app, and the URL of its functions folder in stack traces. */
export interface LoadedFolder {
  readonly app: LoadedApp;
  readonly functionsUrl: string;
}

/** Loads the app in a folder (a real path) with the modules of the service. */
export type FolderLoader = (
  functionsDir: string,
  systemModules: readonly SystemModule[],
) => Promise<LoadedFolder>;

/** Imports the files of the folder. They find the packages that the runtime's configuration names. */
const importFolder: FolderLoader = async (functionsDir, systemModules) => ({
  app: await loadApp(functionsDir, systemModules),
  functionsUrl: fileUrl(functionsDir),
});

let loadFolder: FolderLoader = importFolder;

/** Sets how this process loads functions folders. */
export function loadFoldersWith(loader: FolderLoader): void {
  loadFolder = loader;
}

/** Loads an app with the functions of the test server. Throws `BrokenAppError`. */
export async function loadTestApp(
  { functionsDir, modules }: Pick<TestServerOptions, "functionsDir" | "modules">,
): Promise<LoadedFolder> {
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
  const { app, functionsUrl } = await loadFolder(await Deno.realPath(functionsDir), systemModules);
  return { app: withTestFunctions(app), functionsUrl };
}

function withTestFunctions(app: LoadedApp): LoadedApp {
  const functions = new Map(app.functions);
  for (const added of testFunctions()) functions.set(added.udfPath, added);
  return { ...app, functions };
}
