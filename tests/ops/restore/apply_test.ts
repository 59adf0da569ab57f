/** Applying restores: replaced files, and resuming after an interruption at any step. */
import assert from "node:assert/strict";
import { join } from "node:path";
import {
  applyStagedRestore,
  cancelRestore,
  finishInterruptedRestore,
  RestoreError,
  stagedRestore,
  stageRestore,
} from "../../../mod/ops/backups/restore/mod.ts";
import {
  type ArchiveContents,
  filesOf,
  fillDataFolder,
  logBytes,
  makeArchive,
  notesOf,
  TemporaryFolder,
} from "./support.ts";

const NOW = new Date("2026-03-04T05:06:07.890Z");
const LATER = new Date("2027-01-01T00:00:00Z");
const KEPT = "pre-restore-2026-03-04T05-06-07Z";

const everything: ArchiveContents = {
  parts: ["database", "log", "files", "secret"],
  files: {
    "logs.db": await logBytes(),
    "auth_secret.key": "new key",
    "storage/cd/cdef": "new file",
    "storage/ab/abff": "another",
  },
};

/** A data folder after a kill of the server, with a staged restore. */
async function staged(
  contents: ArchiveContents,
  { fill = true, withSecret = true }: { readonly fill?: boolean; readonly withSecret?: boolean } = {},
) {
  const folder = new TemporaryFolder();
  const dataDir = join(folder.path, "data");
  await Deno.mkdir(dataDir);
  if (fill) await fillDataFolder(dataDir);
  const before = await filesOf(dataDir);
  const archive = await makeArchive(folder.path, contents);
  const restore = await stageRestore({ dataDir, archive, source: "backup", withSecret });
  return { dataDir, before, restore, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

/** Files other than those of the restore. */
function below(files: Record<string, string>, folder: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(files).filter(([name]) => name.startsWith(`${folder}/`))
      .map(([name, hash]) => [name.slice(folder.length + 1), hash]),
  );
}

function only(files: Record<string, string>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, files[name] ?? "missing"]));
}

const databaseFiles = ["data.db", "data.db-wal", "data.db-shm"];

Deno.test("[RS6] the next start applies a staged restore and keeps the replaced files", async () => {
  await using s = await staged({});
  const applied = await applyStagedRestore(s.dataDir, NOW);
  assert.deepEqual(applied, { ...s.restore, keptIn: join(s.dataDir, KEPT) });
  assert.deepEqual(notesOf(join(s.dataDir, KEPT, "data.db")), ["old"]);
  assert.deepEqual(notesOf(join(s.dataDir, "data.db")), ["new", "newer"]);
  assert.equal(await stagedRestore(s.dataDir), null);
  assert.equal(await applyStagedRestore(s.dataDir, LATER), null);
});

Deno.test("[RS6] the log of the old database is moved with it, and a journal too", async () => {
  await using s = await staged({});
  await Deno.writeTextFile(join(s.dataDir, "data.db-journal"), "of an unfinished transaction");
  assert.ok("data.db-wal" in s.before && "data.db-shm" in s.before);
  await applyStagedRestore(s.dataDir, NOW);
  const after = await filesOf(s.dataDir);
  const { "data.db-journal": journal, ...others } = below(after, KEPT);
  assert.deepEqual(others, only(s.before, databaseFiles));
  assert.ok(journal !== undefined);
  for (const name of ["wal", "shm", "journal"]) assert.ok(!(`data.db-${name}` in after), name);
});

Deno.test("[RS8] parts missing in the backup are kept: files, execution log, secret key, backups", async () => {
  await using s = await staged({});
  await applyStagedRestore(s.dataDir, NOW);
  const after = await filesOf(s.dataDir);
  const others = Object.keys(s.before).filter((name) => !databaseFiles.includes(name));
  assert.deepEqual(only(after, others), only(s.before, others));
});

Deno.test("[RS8] parts of the backup replace the existing ones as a whole", async () => {
  await using s = await staged(everything);
  await applyStagedRestore(s.dataDir, NOW);
  const after = await filesOf(s.dataDir);
  assert.deepEqual(
    Object.keys(after).filter((name) => !name.startsWith(KEPT)).sort(),
    ["auth_secret.key", "backups/one.tar.zst", "data.db", "logs.db", "storage/ab/abff", "storage/cd/cdef"],
  );
  const { "backups/one.tar.zst": _, ...replaced } = s.before;
  assert.deepEqual(below(after, KEPT), replaced);
  assert.equal(await Deno.readTextFile(join(s.dataDir, "auth_secret.key")), "new key");
  for (const name of ["auth_secret.key", "data.db", "logs.db"]) {
    assert.equal((await Deno.stat(join(s.dataDir, name))).mode! & 0o777, 0o600, name);
  }
});

Deno.test("[RS8] a backup without any files replaces existing ones", async () => {
  await using s = await staged({ parts: ["database", "files"] });
  await applyStagedRestore(s.dataDir, NOW);
  const after = await filesOf(s.dataDir);
  assert.equal(after["storage/"], "");
  assert.ok(`${KEPT}/storage/ab/abcd` in after);
});

Deno.test("[RS9] a staged restore keeps the existing secret key", async () => {
  await using s = await staged(everything, { withSecret: false });
  await applyStagedRestore(s.dataDir, NOW);
  assert.equal(await Deno.readTextFile(join(s.dataDir, "auth_secret.key")), "old key");
});

Deno.test("[RS6] a new data folder has no data to keep", async () => {
  await using s = await staged(everything, { fill: false });
  const applied = await applyStagedRestore(s.dataDir, NOW);
  assert.equal(applied?.keptIn, null);
  assert.deepEqual(
    Object.keys(await filesOf(s.dataDir)).sort(),
    ["auth_secret.key", "data.db", "logs.db", "storage/ab/abff", "storage/cd/cdef"],
  );
});

Deno.test("[RS6] two restores in one second keep replaced files in separate folders", async () => {
  await using s = await staged({ notes: ["a"] });
  await applyStagedRestore(s.dataDir, NOW);
  const archive = await makeArchive(join(s.dataDir, ".."), { notes: ["b"] });
  await stageRestore({ dataDir: s.dataDir, archive, source: "backup", withSecret: false });
  const applied = await applyStagedRestore(s.dataDir, NOW);
  assert.equal(applied?.keptIn, join(s.dataDir, `${KEPT}-2`));
  const notes = [KEPT, `${KEPT}-2`, "."].map((folder) => notesOf(join(s.dataDir, folder, "data.db")));
  assert.deepEqual(notes, [["old"], ["a"], ["b"]]);
});

class Killed extends Error {}

/** Stops a run before its nth step; `steps` contains the planned ones. */
function killBefore(nth: number) {
  const steps: string[] = [];
  const beforeStep = (step: string) => {
    if (steps.push(step) === nth) throw new Killed(step);
  };
  return { steps, beforeStep };
}

/** Whether a run stopped before its nth step; rejects with other errors. */
async function killed(
  nth: number,
  run: (options: { readonly beforeStep: (step: string) => void }) => Promise<unknown>,
): Promise<boolean> {
  try {
    await run(killBefore(nth));
    return false;
  } catch (error) {
    if (error instanceof Killed) return true;
    throw error;
  }
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to);
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(join(from, name), join(to, name));
    else await Deno.copyFile(join(from, name), join(to, name));
  }
}

/** Hashes of files regardless of their names, to check that nothing was lost. */
function contents(files: Record<string, string>): Set<string> {
  return new Set(Object.values(files));
}

// `stride`: steps of the cancellation to skip, because each takes time.
for (
  const { name, archive, stride } of [
    { name: "the database", archive: {}, stride: 1 },
    { name: "everything", archive: everything, stride: 5 },
  ]
) {
  Deno.test(`[RS7] a restore of ${name} interrupted before any step is continued by the next start`, async () => {
    await using s = await staged(archive);
    const whole = `${s.dataDir}-whole`;
    await copyFolder(s.dataDir, whole);
    await applyStagedRestore(whole, NOW);
    const expected = await filesOf(whole);
    let nth = 1;
    for (;; nth++) {
      const dataDir = `${s.dataDir}-${nth}`;
      await copyFolder(s.dataDir, dataDir);
      const ended = !await killed(nth, (options) => applyStagedRestore(dataDir, NOW, options));
      const found = contents(await filesOf(dataDir));
      for (const [file, hash] of Object.entries(s.before)) {
        assert.ok(found.has(hash), `${file} was lost at ${nth}`);
      }
      // Killed again one step later, before it finishes.
      if (!ended) {
        await killed(2, (options) => applyStagedRestore(dataDir, NOW, options));
        await applyStagedRestore(dataDir, nth > 1 ? LATER : NOW);
      }
      const after = await filesOf(dataDir);
      assert.deepEqual(after, expected, `killed before step ${nth}`);
      if (ended) break;
    }
    // Three old files and a new one, each moved and synced, and the surrounding steps.
    assert.ok(nth > 2 * 4 + 4, `${nth} steps`);
  });

  Deno.test(`[RS7] a restore of ${name} interrupted before any step can be undone, also with further interruptions`, async () => {
    await using s = await staged(archive);
    const applied = `${s.dataDir}-whole`;
    await copyFolder(s.dataDir, applied);
    await applyStagedRestore(applied, NOW);
    const done = await filesOf(applied);
    let undone = 0;
    for (let nth = 1;; nth++) {
      let interrupted = false;
      let finished = false;
      for (let goBack = 1;; goBack += stride) {
        const dataDir = `${s.dataDir}-${nth}-${goBack}`;
        await copyFolder(s.dataDir, dataDir);
        interrupted = await killed(nth, (options) => applyStagedRestore(dataDir, NOW, options));
        const wasStaged = await stagedRestore(dataDir) !== null;
        finished = !await killed(goBack, (options) => cancelRestore(dataDir, options));
        // The next start continues a started cancellation, and has no other effect.
        const cancelled = finished || goBack > 1 || !wasStaged;
        if (!cancelled) {
          await Deno.remove(dataDir, { recursive: true });
          continue;
        }
        await finishInterruptedRestore(dataDir);
        await applyStagedRestore(dataDir, LATER);
        const after = await filesOf(dataDir);
        await Deno.remove(dataDir, { recursive: true });
        assert.deepEqual(
          after,
          wasStaged ? s.before : done,
          `apply ended before ${nth}, cancel before ${goBack}`,
        );
        undone++;
        if (finished) break;
      }
      if (!interrupted) break;
    }
    assert.ok(undone > 50, `${undone} ways`);
  });
}

Deno.test("[RS7] other commands finish an interrupted restore only", async () => {
  await using s = await staged({});
  assert.equal(await finishInterruptedRestore(s.dataDir), null);
  assert.deepEqual(await stagedRestore(s.dataDir), s.restore);
  assert.ok(await killed(5, (options) => applyStagedRestore(s.dataDir, NOW, options)));
  assert.deepEqual(await finishInterruptedRestore(s.dataDir), {
    ...s.restore,
    keptIn: join(s.dataDir, KEPT),
  });
  assert.deepEqual(notesOf(join(s.dataDir, "data.db")), ["new", "newer"]);
});

Deno.test("[RS7] a file created in between is neither overwritten nor mistaken for the restored one", async () => {
  await using s = await staged({});
  // The old database has been moved away, and the new one not moved in yet.
  await assert.rejects(
    applyStagedRestore(s.dataDir, NOW, {
      beforeStep: (step) => {
        if (/^move restore-staged/.test(step)) throw new Killed();
      },
    }),
    Killed,
  );
  await Deno.writeTextFile(join(s.dataDir, "data.db"), "made by another program");
  await assert.rejects(applyStagedRestore(s.dataDir, NOW), (error) => {
    assert.ok(error instanceof RestoreError);
    assert.match(error.message, /Both "data\.db" and ".*" exist in the data folder.*Move "data\.db"/);
    return true;
  });
  assert.equal(await Deno.readTextFile(join(s.dataDir, "data.db")), "made by another program");
  await Deno.remove(join(s.dataDir, "data.db"));
  await applyStagedRestore(s.dataDir, LATER);
  assert.deepEqual(notesOf(join(s.dataDir, "data.db")), ["new", "newer"]);
});

Deno.test("[RS12] missing staged files are reported before anything is moved, and the restore can be canceled", async () => {
  await using s = await staged({});
  const { folder } = JSON.parse(
    await Deno.readTextFile(join(s.dataDir, "restore-staged/pending-restore.json")),
  ) as { folder: string };
  await Deno.remove(join(s.dataDir, "restore-staged", folder, "data.db"));
  const before = await filesOf(s.dataDir);
  await assert.rejects(applyStagedRestore(s.dataDir, NOW), /data\.db" is missing from the data folder/);
  assert.deepEqual(await filesOf(s.dataDir), before);
  assert.equal(await cancelRestore(s.dataDir), true);
  assert.deepEqual(await filesOf(s.dataDir), s.before);
});

Deno.test("[RS12] damaged staged files are reported before anything is moved", async () => {
  await using s = await staged(everything);
  const { folder } = JSON.parse(
    await Deno.readTextFile(join(s.dataDir, "restore-staged/pending-restore.json")),
  ) as { folder: string };
  const at = (name: string) => join(s.dataDir, "restore-staged", folder, name);
  const sound = new Map<string, Uint8Array>();
  for (const name of ["data.db", "logs.db"]) sound.set(name, await Deno.readFile(at(name)));
  const zeroes = new Uint8Array(sound.get("data.db")?.length ?? 0);
  for (
    const [name, damage, reason] of [
      [
        "data.db",
        () => Deno.truncate(at("data.db"), 5000),
        /data\.db" is damaged: it has 5000 bytes, but had/,
      ],
      ["logs.db", () => Deno.truncate(at("logs.db"), 0), /logs\.db" is damaged: it has 0 bytes/],
      ["data.db", () => Deno.writeFile(at("data.db"), zeroes), /data\.db" is damaged: it is no database/],
    ] as const
  ) {
    await damage();
    const before = await filesOf(s.dataDir);
    await assert.rejects(applyStagedRestore(s.dataDir, NOW), (error) => {
      assert.ok(error instanceof RestoreError);
      assert.match(error.message, reason);
      return true;
    });
    assert.deepEqual(await filesOf(s.dataDir), before);
    await Deno.writeFile(at(name), sound.get(name) ?? zeroes);
  }
  assert.equal(await cancelRestore(s.dataDir), true);
  assert.deepEqual(await filesOf(s.dataDir), s.before);
});

Deno.test("[RS12] a restore with a broken marker can be canceled only while nothing has moved", async () => {
  const marker = "restore-staged/pending-restore.json";
  for (const text of ["{", "", '{"format":1}']) {
    await using s = await staged(everything);
    await Deno.writeTextFile(join(s.dataDir, marker), text);
    await assert.rejects(applyStagedRestore(s.dataDir, NOW), /it was damaged or edited/);
    assert.equal(await cancelRestore(s.dataDir), true);
    assert.deepEqual(await filesOf(s.dataDir), s.before);
  }
  let refused = 0;
  for (let nth = 1;; nth++) {
    await using s = await staged(everything);
    if (!await killed(nth, (options) => applyStagedRestore(s.dataDir, NOW, options))) break;
    if (await stagedRestore(s.dataDir) === null) break;
    await Deno.writeTextFile(join(s.dataDir, marker), "{");
    const before = await filesOf(s.dataDir);
    try {
      await cancelRestore(s.dataDir);
      const { [`${KEPT}/`]: _, ...after } = await filesOf(s.dataDir);
      assert.deepEqual(after, s.before, `ended before step ${nth}`);
    } catch (error) {
      if (!(error instanceof RestoreError)) throw error;
      assert.match(error.message, /it is unknown whether files were moved/);
      assert.deepEqual(await filesOf(s.dataDir), before);
      refused++;
    }
  }
  assert.ok(refused > 5, `${refused} refused`);
});
