import assert from "node:assert/strict";
import { join } from "node:path";
import { NoSpaceError } from "../../mod/ops/backups/backup_error.ts";
import { ServiceError } from "../../mod/errors.ts";
import { BackupFolder } from "../../mod/ops/backups/backup_folder.ts";
import type { MakeBackup } from "../../mod/ops/backups/backups.ts";
import { errorOf, startAdminApp } from "./support/admin_app.ts";
import { writeTestArchive } from "./support/archives.ts";
import { TempFolder } from "../support/temp_folder.ts";

const NAME = /^backup-\d{8}T\d{6}Z-[0-9a-f]{8}\.tar\.zst$/;

/** Creates dummy archives and records the options. */
function maker(): { readonly asked: Parameters<MakeBackup>[0][]; readonly make: MakeBackup } {
  const asked: Parameters<MakeBackup>[0][] = [];
  return {
    asked,
    async make(options) {
      asked.push(options);
      const { createdAt, ts, parts } = await writeTestArchive(options.out);
      const bytes = (await Deno.stat(options.out)).size;
      return { path: options.out, createdAt, ts, parts, bytes, missingFiles: 3, history: null };
    },
  };
}

async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).toSorted();
}

const post = (body?: unknown) => ({
  method: "POST",
  ...(body !== undefined && { body: JSON.stringify(body) }),
});

Deno.test("[AD3] a backup is created as requested, without the secret key", async () => {
  const { asked, make } = maker();
  await using app = await startAdminApp({ make });
  for (
    const [body, withAux, withFiles] of [
      [undefined, false, false],
      [{}, false, false],
      [{ includeAux: true }, true, false],
      [{ includeFiles: true, includeSecret: true }, false, true],
    ] as const
  ) {
    const response = await app.request("/backups", post(body));
    const made = await response.json();
    assert.deepEqual([response.status, response.headers.get("cache-control")], [200, "no-store"]);
    assert.match(made.name, NAME);
    const out = join(app.backupsDir, made.name);
    assert.deepEqual(asked.at(-1), { out, withAux, withFiles, includeSecret: false });
    const { size } = await Deno.stat(out);
    const { name } = made;
    const facts = { createdAt: "2030-01-01T00:00:00.000Z", ts: 7, parts: ["database"] };
    assert.deepEqual(made, { name, size, ...facts, missingFiles: 3 });
  }
  assert.equal(app.logged.at(-1)?.message, "Backup created");
});

Deno.test("[AD3] an invalid body is rejected", async () => {
  await using app = await startAdminApp();
  for (const body of ["[]", "null", '{"includeAux":"yes"}', "{"]) {
    const { status, code } = await errorOf(await app.request("/backups", { method: "POST", body }));
    assert.deepEqual([status, code], [400, "bad_request"], body);
  }
});

Deno.test("[AD4] a failed backup reports the reason and leaves no file behind", async () => {
  for (
    const [error, expected] of [
      [new Error("The database is damaged"), [500, "backup_failed"]],
      [Object.assign(new Error("Failed"), { code: "ENOSPC" }), [507, "disk_full"]],
      [new NoSpaceError({ out: "a", dataDir: "b" }), [507, "disk_full"]],
    ] as const
  ) {
    await using app = await startAdminApp({
      async make({ out }) {
        await Deno.writeTextFile(out, "half of it");
        throw error;
      },
    });
    const { status, code, message } = await errorOf(await app.request("/backups", post()));
    assert.deepEqual([status, code], expected);
    assert.ok(message.includes(error.message), message);
    assert.deepEqual(await namesIn(app.backupsDir), []);
    assert.deepEqual(app.logged.map(({ level, message }) => `${level} ${message}`), [
      "error Backup failed",
    ]);
  }
});

Deno.test("[AD4] too many queued backups are overloaded", async () => {
  await using app = await startAdminApp({ make: () => Promise.reject(new ServiceError("overloaded")) });
  const { status, code } = await errorOf(await app.request("/backups", post()));
  assert.deepEqual([status, code], [503, "overloaded"]);
});

Deno.test("[AD5] the list describes every backup, newest first, and damaged ones with the reason", async () => {
  await using app = await startAdminApp();
  const path = (name: string) => join(app.backupsDir, name);
  await writeTestArchive(path("b.tar.zst"), { createdAt: "2030-01-02T00:00:00.000Z", ts: 2 });
  await writeTestArchive(path("a.tar.zst"), { createdAt: "2030-01-03T00:00:00.000Z", ts: 3 });
  await Deno.writeTextFile(path("broken.tar.zst"), "this is none");
  await Deno.utime(path("broken.tar.zst"), 0, new Date("2030-01-01T00:00:00Z"));
  await Deno.writeTextFile(path(".backup-20300101T000000Z-x.tar.zst"), "still being made");
  await Deno.writeTextFile(path("notes.txt"), "not a backup");
  await Deno.mkdir(path("folder.tar.zst"));
  await Deno.symlink(path("a.tar.zst"), path("link.tar.zst"));
  const list = async () => await (await app.request("/backups")).json();
  const size = async (name: string) => (await Deno.stat(path(name))).size;
  const first = await list();
  const [, , damaged] = first.backups;
  assert.deepEqual(first, {
    backups: [
      {
        name: "a.tar.zst",
        size: await size("a.tar.zst"),
        createdAt: "2030-01-03T00:00:00.000Z",
        ts: 3,
        parts: ["database"],
      },
      {
        name: "b.tar.zst",
        size: await size("b.tar.zst"),
        createdAt: "2030-01-02T00:00:00.000Z",
        ts: 2,
        parts: ["database"],
      },
      { name: "broken.tar.zst", size: 12, createdAt: "2030-01-01T00:00:00.000Z", error: damaged.error },
    ],
    // Known only for backups that this server has created or found at its schedule.
    newest: null,
    restore: null,
    replication: { enabled: false },
  });
  assert.match(damaged.error, /archive/i);
  // Changed files are read again, deleted ones dropped.
  await Deno.remove(path("a.tar.zst"));
  await Deno.remove(path("broken.tar.zst"));
  await writeTestArchive(path("broken.tar.zst"), { ts: 9 });
  assert.deepEqual(
    (await list()).backups.map(({ name, ts }: { name: string; ts: number }) => [name, ts]),
    [["b.tar.zst", 2], ["broken.tar.zst", 9]],
  );
});

Deno.test("[AD5] an unreadable file is listed with its error, and read once it is readable", async () => {
  await using app = await startAdminApp();
  const path = (name: string) => join(app.backupsDir, name);
  await writeTestArchive(path("good.tar.zst"), { createdAt: "2030-01-02T00:00:00.000Z" });
  await writeTestArchive(path("closed.tar.zst"), { ts: 5 });
  await Deno.utime(path("closed.tar.zst"), 0, new Date("2030-01-01T00:00:00Z"));
  const list = async () => (await (await app.request("/backups")).json()).backups;
  {
    using _closed = closed(path("closed.tar.zst"));
    const [good, bad] = await list();
    assert.equal(good.name, "good.tar.zst");
    assert.deepEqual([bad.name, bad.createdAt, bad.ts], [
      "closed.tar.zst",
      "2030-01-01T00:00:00.000Z",
      undefined,
    ]);
    assert.match(bad.error, /Permission denied/);
  }
  assert.deepEqual((await list()).map(({ ts }: { ts: number }) => ts), [7, 5]);
});

/** Until disposed, a file appears to belong to another user, even to a privileged process. */
function closed(path: string): Disposable {
  const { open } = Deno;
  Deno.open = (at, options) =>
    at === path
      ? Promise.reject(new Deno.errors.PermissionDenied("Permission denied (os error 13)"))
      : open(at, options);
  return { [Symbol.dispose]: () => void (Deno.open = open) };
}

Deno.test("[AD5] unfinished files of a killed server are removed at the next start", async () => {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  await Deno.writeTextFile(
    join(folder, ".backup-20300101T000000Z-aa.tar.zst.00112233aabb.syncline-partial"),
    "half of it",
  );
  await Deno.writeTextFile(join(folder, ".hidden"), "of another user");
  const opened = await BackupFolder.open(folder);
  assert.deepEqual(await namesIn(folder), [".hidden"]);
  assert.deepEqual(await opened.list(), []);
});

Deno.test("[AD6] a download is the file, with its length", async () => {
  await using app = await startAdminApp();
  const path = join(app.backupsDir, "a.tar.zst");
  await writeTestArchive(path, { bytes: 3_000_000 });
  const expected = await Deno.readFile(path);
  const response = await app.request("/backups/a.tar.zst");
  assert.equal(response.status, 200);
  const headers = ["content-type", "content-length", "content-disposition", "cache-control"]
    .map((name) => response.headers.get(name));
  assert.deepEqual(headers, [
    "application/zstd",
    String(expected.length),
    'attachment; filename="a.tar.zst"',
    "no-store",
  ]);
  assert.deepEqual(await response.bytes(), expected);
  const head = await app.request("/backups/a.tar.zst", { method: "HEAD" });
  assert.deepEqual([head.status, head.headers.get("content-length"), await head.text()], [
    200,
    String(expected.length),
    "",
  ]);
});

Deno.test("[AD6] a deleted backup is not available", async () => {
  await using app = await startAdminApp();
  await writeTestArchive(join(app.backupsDir, "a.tar.zst"));
  const response = await app.request("/backups/a.tar.zst", { method: "DELETE" });
  assert.deepEqual([response.status, await response.json()], [200, {}]);
  assert.deepEqual(await namesIn(app.backupsDir), []);
  assert.equal(app.logged.at(-1)?.message, "Backup deleted");
  const again = await errorOf(await app.request("/backups/a.tar.zst", { method: "DELETE" }));
  assert.deepEqual([again.status, again.code], [404, "not_found"]);
});

Deno.test("[AD6] names cannot leave the folder of backups", async () => {
  await using app = await startAdminApp();
  const outside = join(app.backupsDir, "../outside.tar.zst");
  await writeTestArchive(outside);
  await writeTestArchive(join(app.backupsDir, ".hidden.tar.zst"));
  await Deno.symlink(outside, join(app.backupsDir, "link.tar.zst"));
  await Deno.mkdir(join(app.backupsDir, "folder.tar.zst"));
  for (
    const name of [
      "../outside.tar.zst",
      "..%2foutside.tar.zst",
      "%2e%2e%2foutside.tar.zst",
      "..%252foutside.tar.zst",
      "..%5coutside.tar.zst",
      encodeURIComponent(outside),
      ".hidden.tar.zst",
      "folder.tar.zst",
      "link.tar.zst",
      "a.tar.zst%00",
      "%2e%2e%2f",
      ".tar.zst",
      "a.tar",
      `${"a".repeat(300)}.tar.zst`,
      "nowhere.tar.zst",
    ]
  ) {
    for (const [method, path] of [["GET", ""], ["DELETE", ""], ["POST", "/restore"]] as const) {
      const { status, code } = await errorOf(await app.request(`/backups/${name}${path}`, { method }));
      assert.deepEqual([status, code], [404, "not_found"], `${method} ${name}`);
    }
  }
  assert.ok((await Deno.stat(outside)).isFile);
});
