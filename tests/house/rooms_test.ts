/** The order of the rooms below `mod/`, and their doors: see the map in mod/ARCHITECTURE.md. */
import assert from "node:assert/strict";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** From the ground up. Rooms on one floor do not know one another. */
const FLOORS: readonly (readonly string[])[] = [
  ["limits.ts", "errors.ts", "explained.ts"],
  ["kit", "functions/limits.ts"],
  ["protocol"],
  ["engine", "client"],
  ["functions/api"],
  ["functions"],
  ["functions/wire"],
  ["functions/isolate", "functions/packages"],
  ["functions/versions"],
  ["functions/host"],
  ["sync", "auth", "storage", "scheduler", "ops", "cluster"],
  ["cluster/postgres"],
  ["config"],
  ["server"],
  ["testing"],
  ["cli"],
  ["build"],
  ["client/build"],
  ["npm"],
];

/** Rooms of single parts: each file is one. */
const OPEN_ROOMS = new Set([
  "limits.ts",
  "errors.ts",
  "explained.ts",
  "kit",
  "protocol",
  "functions",
  "functions/limits.ts",
  "config",
  "build",
  "client/build",
]);

/** Doors beside each room's `mod.ts` and `limits.ts`, with what they spare others. */
const DOORS = new Set([
  // Types alone, for everybody.
  "engine/types.ts",
  // What a row of the journal is, without a database.
  "engine/journal/row.ts",
  // The commits of applied rows, likewise.
  "engine/journal/row_entries.ts",
  // Without SQLite, for what builders and pages load of what apps import.
  "engine/errors.ts",
  // What only functions of the service need, beside what apps import.
  "functions/api/service.ts",
  // Arguments as the wire carries them, for clients without a socket.
  "client/json_args.ts",
  // The program of an isolate.
  "functions/isolate/main.ts",
  // The S3 client is loaded where a bucket is used.
  "storage/blobs/s3_blobs.ts",
  "ops/backups/bucket_archives.ts",
  "ops/backups/scheduled/bucket_target.ts",
  // The driver is loaded only in a cluster.
  "cluster/postgres/place.ts",
  // A command needs none of the endpoints.
  "ops/spooled_body.ts",
  // The endpoints, without what reads and writes tables: that is loaded with the first request.
  "ops/tables/export/routes.ts",
  "ops/tables/import/routes.ts",
  // The log as a file, for the command that reads it.
  "ops/log/log_file.ts",
  // Names of files, without what packs and unpacks them.
  "ops/backups/archive/entry_names.ts",
  // Nothing of the server is loaded for a command that does not need it.
  "server/server.ts",
  "server/backend.ts",
  "server/signals.ts",
  "server/net/native_sockets.ts",
  "server/permissions/narrow.ts",
  "server/offline_host.ts",
  "server/data/aside.ts",
  "server/data/data_lock.ts",
  "server/data/data_owner.ts",
  "server/data/data_restore.ts",
  "server/data/unfinished_import.ts",
  // A test server answers as a server does.
  "server/http/api_headers.ts",
  "server/http/app_routes.ts",
  "server/http/origin_guard.ts",
  "server/dev/dev_mode.ts",
  "server/dev/type_check.ts",
  "server/dev/watch_folder.ts",
]);

const FILES_MAX = 20;

async function* filesBelow(folder: string): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(join(root, "mod", folder))) {
    const path = normalize(join(folder, entry.name));
    if (entry.isDirectory) yield* filesBelow(path);
    else if (/\.tsx?$/.test(entry.name)) yield path;
  }
}

const ROOMS = FLOORS.flat().toSorted((a, b) => b.length - a.length);
const roomOf = (path: string) => ROOMS.find((room) => path === room || path.startsWith(`${room}/`));
/** Rooms of one house know one another's files. */
const houseOf = (room: string) => room.split("/")[0];
const floorOf = (room: string) => FLOORS.findIndex((rooms) => rooms.includes(room));

/** Files that lead back to themselves by what they import, types included. */
function circling(imports: ReadonlyMap<string, readonly string[]>): string[] {
  let rest = [...imports.keys()];
  for (let before = Infinity; rest.length < before;) {
    before = rest.length;
    const there = new Set(rest);
    const imported = new Set(
      rest.flatMap((path) => imports.get(path)?.filter((other) => there.has(other)) ?? []),
    );
    rest = rest.filter((path) => imported.has(path) && imports.get(path)?.some((other) => there.has(other)));
  }
  return rest;
}

const IMPORT = /(?:\bfrom\s+|\bimport\(\s*|^import\s+)"(\.[^"]+\.tsx?)"/gm;

Deno.test("rooms import downward and through doors, none leads back to itself, and no folder is crowded", async () => {
  const faults: string[] = [];
  const crowds = new Map<string, number>();
  const imports = new Map<string, string[]>();
  for await (const path of filesBelow(".")) {
    const room = roomOf(path);
    if (room === undefined) {
      faults.push(`${path} stands in no room of the list`);
      continue;
    }
    crowds.set(dirname(path), (crowds.get(dirname(path)) ?? 0) + 1);
    for (const [, specifier = ""] of (await Deno.readTextFile(join(root, "mod", path))).matchAll(IMPORT)) {
      const target = normalize(join(dirname(path), specifier));
      imports.set(path, [...imports.get(path) ?? [], target]);
      const other = roomOf(target);
      if (other === room || target.startsWith("..")) continue;
      if (other === undefined || floorOf(other) >= floorOf(room)) {
        faults.push(`${path} imports upward: ${target}`);
      } else if (
        houseOf(other) !== houseOf(room) && !OPEN_ROOMS.has(other) && !/\/(mod|limits)\.ts$/.test(target) &&
        !DOORS.has(target)
      ) {
        faults.push(`${path} passes by the door of ${other}: ${target}`);
      }
    }
  }
  for (const [folder, files] of crowds) {
    if (files > FILES_MAX) faults.push(`mod/${folder} has ${files} files, more than ${FILES_MAX}`);
  }
  faults.push(...circling(imports).map((path) => `${path} is part of a circle of imports`));
  assert.deepEqual(faults, []);
});
