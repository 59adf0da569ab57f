/**
 * Generates the import maps of isolates, `import_map.json` and `import_map_runner.json`, from the modules of this runtime:
 * `deno run --allow-read --allow-write=mod/functions/isolate/process --allow-env --allow-sys mod/functions/isolate/process/make_import_maps.ts`.
 * A test fails if they do not match the runtime.
 */
import { builtinModules } from "node:module";
import type { IsolateRole } from "../../wire/messages.ts";
import { moduleAddresses } from "../app/author_modules.ts";
import { isOpenModule, refusedMessage, stubSource } from "./refused_modules.ts";

interface ImportMap {
  readonly imports: Record<string, string>;
  readonly scopes: Record<string, Record<string, string>>;
}

/** Packages for app authors. The map of an isolate points app code to copies of its own. */
const packages = { "zod": "npm:zod@4.6.7" };

/** Packages of our own modules. */
const ownPackages = {
  "zod": "npm:zod@4.6.7",
  "croner": "npm:croner@11.0.1",
  "hash-wasm": "npm:hash-wasm@4.13.0",
};

/** Modules that no list contains. */
const unlisted = ["ffi", "quic", "sea"];

/** Returns the import map for an isolate of this role. Our own folders keep the real modules. */
export async function importMap(role: IsolateRole): Promise<ImportMap> {
  const handedOver = moduleAddresses();
  const imports: Record<string, string> = { ...packages };
  const server = handedOver.get("syncline/server");
  if (server !== undefined) imports["syncline/server"] = server;
  const real: Record<string, string> = { ...ownPackages };
  const names = new Set([...builtinModules.map((name) => name.replace(/^node:/, "")), ...unlisted]);
  for (const name of [...names].sort()) {
    if (isOpenModule(name, role)) continue;
    const specifier = `node:${name}`;
    imports[specifier] = handedOver.get(specifier) ?? await standInUrl(name, role);
    // The bare name is resolved through this map again.
    imports[name] = `data:text/javascript,export*from"${specifier}";export{default}from"${specifier}"`;
    real[specifier] = specifier;
  }
  return { imports, scopes: { "../../": real } };
}

async function standInUrl(name: string, role: IsolateRole): Promise<string> {
  const source = stubSource(name, {
    exports: await exportsOf(name),
    message: refusedMessage(name, role),
  });
  return `data:text/javascript,${source.replaceAll("%", "%25").replaceAll("#", "%23")}`;
}

async function exportsOf(name: string): Promise<Record<string, unknown>> {
  try {
    return await import(`node:${name}`) as Record<string, unknown>;
  } catch {
    return {};
  }
}

if (import.meta.main) {
  for (const [file, role] of [["import_map.json", "reader"], ["import_map_runner.json", "runner"]] as const) {
    const path = new URL(file, import.meta.url);
    Deno.writeTextFileSync(path, `${JSON.stringify(await importMap(role), null, 2)}\n`);
  }
}
