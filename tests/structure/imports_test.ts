/** The layers of the code base: see the map in mod/ARCHITECTURE.md. */
import assert from "node:assert/strict";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Folders and files from the lowest layer up. A file imports from lower layers only, not from its own. */
const LAYERS: readonly (readonly string[])[] = [
  ["mod/limits.ts", "mod/errors.ts", "mod/explained.ts"],
  ["mod/kit", "mod/functions/limits.ts"],
  ["mod/protocol"],
  ["mod/engine", "mod/client"],
  ["mod/functions/api"],
  ["mod/functions"],
  ["mod/functions/wire"],
  ["mod/functions/isolate", "mod/functions/packages"],
  ["mod/functions/versions"],
  ["mod/functions/host"],
  ["mod/presence"],
  [
    "mod/sync",
    "mod/auth",
    "mod/storage",
    "mod/streams",
    "mod/scheduler",
    "mod/ops",
    "mod/cluster",
    "mod/mcp",
    "mod/openapi",
  ],
  ["mod/cluster/postgres"],
  ["mod/config"],
  ["mod/server/limits.ts", "mod/server/feature.ts", "mod/server/isolate_address.ts"],
  ["mod/server/data", "mod/server/docs", "mod/server/net", "mod/server/permissions"],
  ["mod/server/http"],
  ["mod/server/dev", "mod/server/features", "mod/server/takeover"],
  ["mod/server/forwarding"],
  ["mod/server/workers"],
  ["mod/server"],
  ["mod/server/worker"],
  ["mod/testing"],
  ["mod/cli"],
  ["mod/build"],
  ["mod/client/build"],
  ["mod/npm"],
  ["dashboard/app/ui/format.tsx"],
  ["dashboard/app/server"],
  ["dashboard/app/shell/route.ts"],
  ["dashboard/app/ui"],
  ["dashboard/app/views/*"],
  ["dashboard/app/shell"],
  ["dashboard/app"],
  ["dashboard/build"],
];

/** Packages without a `mod.ts`: others may import each of their files. */
const OPEN_PACKAGES = new Set([
  "mod/limits.ts",
  "mod/errors.ts",
  "mod/explained.ts",
  "mod/kit",
  "mod/protocol",
  "mod/functions",
  "mod/functions/limits.ts",
  "mod/config",
  "mod/build",
  "mod/client/build",
]);

/** Files that other packages may import besides `mod.ts` and `limits.ts`, with the reason. */
const PUBLIC_FILES = new Set([
  // The table of commands, for the command reference.
  "mod/cli/commands.ts",
  // Types only.
  "mod/engine/types.ts",
  // The format of a journal row, without SQLite.
  "mod/engine/journal/journal_row.ts",
  // The commits in journal rows, without SQLite.
  "mod/engine/journal/row_entries.ts",
  // Without SQLite, for bundles of the API that apps import.
  "mod/engine/errors.ts",
  // For the functions of the service only.
  "mod/functions/api/service.ts",
  // Example values for schemas, which the dashboard makes, too.
  "mod/openapi/examples.ts",
  // Sign-in with a provider, as in the client.
  "mod/client/accounts/flows.ts",
  // The JSON form of arguments, for clients without a socket.
  "mod/client/json_args.ts",
  // The entry point of an isolate.
  "mod/functions/isolate/main.ts",
  // The S3 client is loaded only where a bucket is used.
  "mod/ops/backups/stored_archives.ts",
  // The PostgreSQL driver is loaded only in a cluster.
  "mod/cluster/postgres/postgres_address.ts",
  // A command does not need the endpoints.
  "mod/ops/spooled_body.ts",
  // The endpoints; the code that reads and writes tables is loaded with the first request.
  "mod/ops/tables/export/routes.ts",
  "mod/ops/tables/import/routes.ts",
  // The log file, for the command that reads it.
  "mod/ops/log/log_file.ts",
  // File names, without the code that reads and writes archives.
  "mod/ops/backups/archive/entry_names.ts",
  // A command loads only the parts of the server that it needs.
  "mod/server/server.ts",
  "mod/server/backend.ts",
  "mod/server/signals.ts",
  "mod/server/net/native_sockets.ts",
  "mod/server/permissions/narrow.ts",
  "mod/server/offline_host.ts",
  "mod/server/data/data_restore.ts",
  "mod/server/data/data_lock.ts",
  // A test server answers as a real one does.
  "mod/server/http/app_routes.ts",
  "mod/server/http/request_gate.ts",
  "mod/server/dev/dev_mode.ts",
  "mod/server/dev/folder_edits.ts",
  "mod/server/dev/type_check.ts",
]);

const FILES_MAX = 20;

async function* sourceFiles(folder: string): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(join(root, folder))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory && entry.name !== "node_modules") yield* sourceFiles(path);
    else if (/\.tsx?$/.test(entry.name)) yield path;
  }
}

interface Unit {
  /** The folder or file. */
  readonly path: string;
  readonly layer: number;
}

/** With the longest paths first: the first that matches is the most specific one. */
const UNITS = LAYERS.flatMap((paths, layer) => paths.map((path) => ({ path, layer })))
  .toSorted((a, b) => b.path.length - a.path.length);

function unitOf(file: string): Unit | undefined {
  for (const unit of UNITS) {
    const { path, layer } = unit;
    if (file === path || file.startsWith(`${path}/`)) return unit;
    // Each folder is a separate unit.
    const folder = path.endsWith("/*") && file.startsWith(path.slice(0, -1)) ? dirname(file) : null;
    if (folder !== null) return { path: folder, layer };
  }
  return undefined;
}

/** `mod/server` of `mod/server/http`, or `dashboard`: folders of one package may import all files of each other. */
function packageOf({ path }: Unit): string {
  return path.startsWith("dashboard/") ? "dashboard" : path.split("/").slice(0, 2).join("/");
}

/** Why a file may not import another one of the code base, or its types only; `null` when it may. */
function fault(file: string, imported: string, typesOnly = false): string | null {
  const [from, to] = [unitOf(file), unitOf(imported)];
  if (from === undefined) return `${file} is in no layer`;
  // Examples, templates and the docs are no part of the layers.
  if (to?.path === from.path || !/^(mod|dashboard)\//.test(imported)) return null;
  if (to === undefined || to.layer >= from.layer) return `${file} imports upward: ${imported}`;
  // The dashboard takes types from the functions it calls.
  const isPublic = packageOf(from) === packageOf(to) || (file.startsWith("dashboard/") && typesOnly) ||
    OPEN_PACKAGES.has(to.path) ||
    /\/(mod|limits)\.ts$/.test(imported) || PUBLIC_FILES.has(imported);
  return isPublic ? null : `${file} imports a private file of ${to.path}: ${imported}`;
}

/** Files that import themselves through others, types included. */
function circular(imports: ReadonlyMap<string, readonly string[]>): string[] {
  let rest = [...imports.keys()];
  for (let before = Infinity; rest.length < before;) {
    before = rest.length;
    const left = new Set(rest);
    const imported = new Set(
      rest.flatMap((path) => imports.get(path)?.filter((other) => left.has(other)) ?? []),
    );
    rest = rest.filter((path) => imported.has(path) && imports.get(path)?.some((other) => left.has(other)));
  }
  return rest;
}

const IMPORT =
  /(?:^(?:import|export)( type)?\b[^"';]*\bfrom\s+|\bfrom\s+|(\btypeof\s+)?\bimport\(\s*|^import\s+)"(\.[^"]+\.tsx?)"/gm;

Deno.test("files import from lower layers and public files only, without circles, and no folder of mod has too many files", async () => {
  const faults: string[] = [];
  const files = new Map<string, number>();
  const imports = new Map<string, string[]>();
  for (const folder of ["mod", "dashboard"]) {
    for await (const path of sourceFiles(folder)) {
      if (folder === "mod") files.set(dirname(path), (files.get(dirname(path)) ?? 0) + 1);
      const text = await Deno.readTextFile(join(root, path));
      const targets: string[] = [];
      for (const [, type, typeOf, specifier = ""] of text.matchAll(IMPORT)) {
        const target = normalize(join(dirname(path), specifier));
        targets.push(target);
        const found = fault(path, target, (type ?? typeOf) !== undefined);
        if (found !== null) faults.push(found);
      }
      imports.set(path, targets);
    }
  }
  for (const [folder, count] of files) {
    if (count > FILES_MAX) faults.push(`${folder} has ${count} files, more than ${FILES_MAX}`);
  }
  faults.push(...circular(imports).map((path) => `${path} is part of a circle of imports`));
  assert.deepEqual(faults, []);
});

Deno.test("an upward import, an import of a private file and a circle are found", () => {
  assert.match(String(fault("mod/kit/log.ts", "mod/engine/mod.ts")), /imports upward/);
  assert.match(String(fault("mod/server/http/port.ts", "mod/server/server.ts")), /imports upward/);
  assert.match(
    String(fault("dashboard/app/views/logs/logs.tsx", "dashboard/app/views/data/cell.tsx")),
    /upward/,
  );
  assert.match(String(fault("mod/sync/hub.ts", "mod/engine/catalog.ts")), /private file of mod\/engine/);
  const [sheet, runs] = ["dashboard/app/views/logs/logs.tsx", "mod/ops/log/run_record.ts"];
  assert.match(String(fault(sheet, runs)), /private file of mod\/ops/);
  assert.equal(fault(sheet, runs, true), null);
  assert.match(String(fault("mod/new/file.ts", "mod/engine/mod.ts")), /in no layer/);
  assert.equal(fault("mod/server/server.ts", "mod/server/http/port.ts"), null);
  assert.equal(fault("dashboard/app/shell/palette.tsx", "dashboard/app/views/data/cell.tsx"), null);
  assert.deepEqual(circular(new Map([["a", ["b"]], ["b", ["c"]], ["c", ["b", "d"]], ["d", []]])), ["b", "c"]);
});
