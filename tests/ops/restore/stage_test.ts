/** Staging: verification, rejections, and no changes to files in use. */
import assert from "node:assert/strict";
import { join } from "node:path";
import {
  cancelRestore,
  RestoreError,
  stagedRestore,
  type StageOptions,
  stageRestore,
} from "../../../mod/ops/backups/restore/mod.ts";
import {
  type ArchiveContents,
  CREATED_AT,
  databaseBytes,
  filesOf,
  fillDataFolder,
  logBytes,
  makeArchive,
  notesOf,
  TemporaryFolder,
} from "./support.ts";

class Setup implements AsyncDisposable {
  readonly #folder = new TemporaryFolder();
  readonly dataDir = join(this.#folder.path, "data");

  async fill(): Promise<Record<string, string>> {
    await Deno.mkdir(this.dataDir);
    await fillDataFolder(this.dataDir);
    return await filesOf(this.dataDir);
  }

  async archive(contents?: ArchiveContents): Promise<string> {
    return await makeArchive(this.#folder.path, contents);
  }

  async stage(contents?: ArchiveContents, options: Partial<StageOptions> = {}) {
    const archive = await this.archive(contents);
    return await stageRestore({
      dataDir: this.dataDir,
      archive,
      source: "backup.tar.zst",
      withSecret: false,
      ...options,
    });
  }

  /** Files in `restore-staged/` without the random folder name. */
  async staged(): Promise<string[]> {
    const names = Object.keys(await filesOf(join(this.dataDir, "restore-staged")));
    return names.map((name) => name.replace(/^[0-9a-f]{16}/, "*")).sort();
  }

  async marker(): Promise<{ readonly folder: string }> {
    return JSON.parse(await Deno.readTextFile(join(this.dataDir, "restore-staged/pending-restore.json")));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#folder[Symbol.asyncDispose]();
  }
}

async function refused(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof RestoreError, String(error));
    return error.message;
  }
  assert.fail("it was not refused");
}

Deno.test("[RS3] a staged archive is verified and stored with the unchanged data", async () => {
  await using s = new Setup();
  const before = await s.fill();
  const staged = await s.stage();
  const { stagedAt, ...rest } = staged;
  assert.deepEqual(rest, {
    createdAt: CREATED_AT,
    ts: 2,
    tables: 1,
    documents: 2,
    parts: ["database"],
    source: "backup.tar.zst",
  });
  assert.ok(Math.abs(Date.now() - Date.parse(stagedAt)) < 60_000, stagedAt);
  assert.deepEqual(await stagedRestore(s.dataDir), staged);
  assert.deepEqual(await s.staged(), ["*/data.db", "pending-restore.json"]);
  assert.deepEqual(notesOf(join(s.dataDir, "restore-staged", (await s.marker()).folder, "data.db")), [
    "new",
    "newer",
  ]);
  const after = await filesOf(s.dataDir);
  assert.deepEqual(
    Object.fromEntries(Object.entries(after).filter(([name]) => !name.startsWith("restore-staged/"))),
    before,
  );
});

Deno.test("[RS3] nothing is staged in a new folder", async () => {
  await using s = new Setup();
  assert.equal(await stagedRestore(s.dataDir), null);
  assert.equal(await cancelRestore(s.dataDir), false);
});

Deno.test("[RS3] an intact execution log is staged without its side files", async () => {
  await using s = new Setup();
  await s.fill();
  const { parts } = await s.stage({
    parts: ["database", "log"],
    files: { "logs.db": await logBytes() },
  });
  assert.deepEqual([parts, await s.staged()], [
    ["database", "log"],
    ["*/data.db", "*/logs.db", "pending-restore.json"],
  ]);
});

Deno.test("[RS9] the secret key is staged only on request", async () => {
  await using s = new Setup();
  await s.fill();
  const contents = { parts: ["database", "secret"], files: { "auth_secret.key": "new key" } } as const;
  const without = await s.stage({ ...contents, parts: [...contents.parts] });
  assert.deepEqual([without.parts, await s.staged()], [["database"], ["*/data.db", "pending-restore.json"]]);
  const withSecret = await s.stage({ ...contents, parts: [...contents.parts] }, { withSecret: true });
  assert.deepEqual(withSecret.parts, ["database", "secret"]);
  assert.deepEqual(await s.staged(), ["*/auth_secret.key", "*/data.db", "pending-restore.json"]);
});

Deno.test("[RS3] an unusable archive is rejected with the reason, and the previously staged one is kept", async () => {
  await using s = new Setup();
  await s.fill();
  const folder = join(s.dataDir, "..");
  const good = await Deno.readFile(await s.archive());
  const write = async (name: string, bytes: Uint8Array) => {
    await Deno.writeFile(join(folder, name), bytes);
    return join(folder, name);
  };
  const flipped = good.slice();
  flipped[good.length >> 1] = (flipped[good.length >> 1] ?? 0) ^ 0x40;
  const cut = await databaseBytes(["new"]);
  const cases: readonly [what: string, archive: string, message: RegExp][] = [
    ["missing", join(folder, "none.tar.zst"), /^File not found: ".*none\.tar\.zst"$/],
    ["a folder", folder, /is not a file\. Pass a backup archive/],
    ["something else", await write("text", new TextEncoder().encode("hello")), /archive/],
    ["empty", await write("empty", new Uint8Array()), /archive/],
    ["cut off", await write("cut", good.subarray(0, good.length - 20)), /archive/],
    ["damaged", await write("flipped", flipped), /archive/],
  ];
  const staged = await s.stage();
  const before = await filesOf(s.dataDir);
  const attempt = (archive: string) =>
    refused(stageRestore({ dataDir: s.dataDir, archive, source: "x", withSecret: false }));
  for (const [what, archive, message] of cases) {
    assert.match(await attempt(archive), message, what);
  }
  for (
    const [database, message] of [
      [
        new TextEncoder().encode("no database\n".repeat(500)),
        /^Cannot restore the archive's .*: it is not a database$/,
      ],
      [cut.subarray(0, cut.length - 4096), /^Cannot restore the archive's .*(malformed|damaged)/],
    ] as const
  ) assert.match(await attempt(await makeArchive(folder, { database })), message);
  const log = await logBytes();
  for (
    const [bytes, message] of [
      [new TextEncoder().encode("no log\n".repeat(900)), /^Cannot restore the archive's execution log: /],
      [
        log.subarray(0, log.length - 4096),
        /^Cannot restore the archive's execution log: .*(malformed|damaged)/,
      ],
    ] as const
  ) {
    const archive = await makeArchive(folder, { parts: ["database", "log"], files: { "logs.db": bytes } });
    assert.match(await attempt(archive), message);
  }
  assert.deepEqual(await filesOf(s.dataDir), before);
  assert.deepEqual(await stagedRestore(s.dataDir), staged);
});

Deno.test("[RS3] a log of another version is skipped, and the data are restored", async () => {
  await using s = new Setup();
  await s.fill();
  const foreign = await logBytes(`PRAGMA application_id = ${0x53594e58}; PRAGMA user_version = 1`);
  const marker = await s.stage({ parts: ["database", "log"], files: { "logs.db": foreign } });
  assert.deepEqual(marker.parts, ["database"]);
  assert.deepEqual(await s.staged(), ["*/data.db", "pending-restore.json"]);
});

/** Until disposed, a path appears to be on another file system. */
function mounted(path: string): Disposable {
  const { lstat } = Deno;
  Deno.lstat = async (at) => {
    const found = await lstat(at);
    return at === path ? { ...found, dev: found.dev + 1 } : found;
  };
  return { [Symbol.dispose]: () => void (Deno.lstat = lstat) };
}

Deno.test("[RS3] files that cannot be replaced by renames are reported before staging", async () => {
  await using s = new Setup();
  const before = await s.fill();
  using _mounted = mounted(join(s.dataDir, "storage"));
  const withFiles: ArchiveContents = {
    parts: ["database", "files"],
    files: { "storage/cd/cdef": "new file" },
  };
  assert.match(
    await refused(s.stage(withFiles)),
    /^"storage" is on another file system than the data folder/,
  );
  assert.deepEqual(await filesOf(s.dataDir), before);
  // Kept files may be anywhere.
  await s.stage();
});

Deno.test("[RS4] another archive replaces the staged one once it is complete", async () => {
  await using s = new Setup();
  await s.fill();
  await s.stage({ notes: ["first"] });
  const { folder } = await s.marker();
  const second = await s.stage({ notes: ["second", "archive", "!"] }, { source: "second" });
  assert.deepEqual(await stagedRestore(s.dataDir), second);
  assert.equal(second.ts, 3);
  assert.notEqual((await s.marker()).folder, folder);
  assert.deepEqual(await s.staged(), ["*/data.db", "pending-restore.json"]);
});

Deno.test("[RS4] leftovers of an archive that was never staged are removed the next time", async () => {
  await using s = new Setup();
  await s.fill();
  const left = join(s.dataDir, "restore-staged", "00112233445566aa", "storage");
  await Deno.mkdir(left, { recursive: true });
  await Deno.writeTextFile(join(left, "x"), "half a file");
  await Deno.writeTextFile(join(s.dataDir, "restore-staged", ".pending-restore.json.0011"), "{");
  await s.stage();
  assert.deepEqual(await s.staged(), ["*/data.db", "pending-restore.json"]);
});

Deno.test("[RS4] one archive is staged at a time", async () => {
  await using s = new Setup();
  await s.fill();
  const staged = await s.stage();
  using folder = await Deno.open(join(s.dataDir, "restore-staged"));
  assert.ok(await folder.tryLock(true));
  assert.match(await refused(s.stage()), /Another restore is being staged/);
  assert.deepEqual(await stagedRestore(s.dataDir), staged);
});

Deno.test("[RS4] staging waits for an operation that is about to end, even if it removes the folder", async () => {
  await using s = new Setup();
  await s.fill();
  const path = join(s.dataDir, "restore-staged");
  await Deno.mkdir(path);
  const folder = await Deno.open(path);
  assert.ok(await folder.tryLock(true));
  const held = Promise.withResolvers<void>();
  const staged = stageRestore(
    { dataDir: s.dataDir, archive: await s.archive(), source: "backup.tar.zst", withSecret: false },
    { onHeld: held.resolve },
  );
  await held.promise;
  await Deno.remove(path);
  folder.close();
  await staged;
  assert.ok(await stagedRestore(s.dataDir));
  // A process that stops waiting must not remove the folder of the new lock holder.
  await cancelRestore(s.dataDir);
  await Deno.mkdir(path);
  using other = await Deno.open(path);
  assert.ok(await other.tryLock(true));
  assert.match(await refused(s.stage()), /Another restore is being staged/);
  assert.ok((await Deno.stat(path)).isDirectory);
});

Deno.test("[RS5] a canceled restore leaves the data folder unchanged", async () => {
  await using s = new Setup();
  const before = await s.fill();
  await s.stage({ parts: ["database", "files"], files: { "storage/cd/cdef": "new file" } });
  const stagedAt = (await stagedRestore(s.dataDir))?.stagedAt;
  assert.equal(await cancelRestore(s.dataDir, { stagedAt: "2000-01-01T00:00:00.000Z" }), false);
  assert.equal((await stagedRestore(s.dataDir))?.stagedAt, stagedAt);
  assert.equal(await cancelRestore(s.dataDir, { stagedAt }), true);
  assert.deepEqual(await filesOf(s.dataDir), before);
  assert.equal(await stagedRestore(s.dataDir), null);
  assert.equal(await cancelRestore(s.dataDir), false);
});

Deno.test("[RS5] canceling waits for a restore being staged, and never cancels another one", async () => {
  await using s = new Setup();
  await s.fill();
  await s.stage();
  const staging = await Deno.open(join(s.dataDir, "restore-staged"));
  assert.ok(await staging.tryLock(true));
  assert.match(await refused(cancelRestore(s.dataDir, { waitMs: 0 })), /Another restore is being staged/);
  const waits = Promise.withResolvers<void>();
  const cancelled = refused(cancelRestore(s.dataDir, { beforeStep: () => waits.resolve() }));
  await waits.promise;
  const marker = { ...await s.marker(), folder: "00112233445566aa", source: "another.tar.zst" };
  await Deno.writeTextFile(join(s.dataDir, "restore-staged/pending-restore.json"), JSON.stringify(marker));
  staging.close();
  assert.match(await cancelled, /"another\.tar\.zst" has replaced that of "backup\.tar\.zst"/);
  assert.equal((await stagedRestore(s.dataDir))?.source, "another.tar.zst");
});

Deno.test("[RS12] an unreadable marker is reported, and has no effect", async () => {
  await using s = new Setup();
  await s.fill();
  await s.stage();
  await Deno.writeTextFile(join(s.dataDir, "restore-staged/pending-restore.json"), '{"format":2}');
  const before = await filesOf(s.dataDir);
  for (const use of [stagedRestore, cancelRestore]) {
    assert.match(await refused(use(s.dataDir)), /Cannot read ".*pending-restore\.json"/);
  }
  assert.match(await refused(s.stage()), /Cannot read/);
  assert.deepEqual(await filesOf(s.dataDir), before);
});
