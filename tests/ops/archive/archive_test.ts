/** Archives: round trips, other programs, damaged and hostile archives. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import {
  ArchiveError,
  type ArchiveManifest,
  extractArchive,
  readManifest,
  UnpackSpaceError,
  writeArchive,
} from "../../../mod/ops/backups/archive/mod.ts";
import {
  archiveOf,
  bytesOf,
  entriesOf,
  foreignArchive,
  type ForeignEntry,
  frame,
  manifest,
  packed,
  petabyteArchive,
  streamOf,
} from "./archives.ts";
import { TempFolder } from "../../support/temp_folder.ts";

const manifestEntry: ForeignEntry = { name: "manifest.json", body: JSON.stringify(manifest) };
const database: ForeignEntry = { name: "data.db", body: "the database" };

async function withFolder(work: (folder: string) => Promise<void>): Promise<void> {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  await work(folder);
}

/** Unpacks into a folder that must be removed again; returns the error. */
async function refusal(
  archive: Uint8Array,
  folder: string,
  kind: typeof ArchiveError | typeof UnpackSpaceError = ArchiveError,
): Promise<Error> {
  const error = await extractArchive(streamOf(archive), join(folder, "unpacked"))
    .then(() => null, (error: unknown) => error);
  assert.ok(error instanceof kind, `refused with ${error}`);
  assert.deepEqual(await Array.fromAsync(Deno.readDir(folder)), [], "something stayed behind");
  return error;
}

async function run(command: string, args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(command, { args: [...args] }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

Deno.test("[BK1] unpacking an archive returns its contents and manifest", () =>
  withFolder(async (folder) => {
    const files = {
      "data.db": randomBytes(3_000_000),
      "logs.db": new Uint8Array(0),
      "auth_secret.key": bytesOf("secret"),
      [`storage/ab/${"ab".repeat(16)}`]: new Uint8Array(2_500_000),
      [`storage/ab/${"ac".repeat(16)}`]: bytesOf("x"),
    };
    const contents: ArchiveManifest = { ...manifest, parts: ["database", "log", "files", "secret"] };
    const archive = await archiveOf(files, contents);
    assert.deepEqual(await readManifest(streamOf(archive)), contents);
    for (const pieceBytes of [77, 100_000, archive.length]) {
      const target = join(folder, "unpacked");
      assert.deepEqual(await extractArchive(streamOf(archive, pieceBytes), target), contents);
      for (const [name, bytes] of Object.entries(files)) {
        assert.ok(bytesEqual(await Deno.readFile(join(target, name)), bytes), name);
        assert.equal((await Deno.stat(join(target, name))).mode! & 0o777, 0o600);
      }
      const names = await Array.fromAsync(Deno.readDir(target), ({ name }) => name);
      assert.deepEqual(names.sort(), ["auth_secret.key", "data.db", "logs.db", "storage"]);
      await Deno.remove(target, { recursive: true });
    }
  }));

Deno.test("[BK2] the system's zstd and tar read an archive; the manifest is the first entry, the checksums the last", () =>
  withFolder(async (folder) => {
    const path = join(folder, "a.tar.zst");
    await Deno.writeFile(path, await archiveOf({ "data.db": randomBytes(2_100_000) }));
    await run("sh", ["-c", 'command -v zstd >/dev/null || exit 0; zstd -dq "$1" -o "$1.tar"', "sh", path]);
    const names = await run("sh", ["-c", 'if test -e "$1.tar"; then tar -tf "$1.tar"; fi', "sh", path]);
    if (names !== "") assert.equal(names, "manifest.json\ndata.db\nchecksums.json\n");
  }));

Deno.test("[BK3] an archive with any byte changed is rejected without leftovers", () =>
  withFolder(async (folder) => {
    const archive = await archiveOf({
      "data.db": bytesOf("the database ".repeat(50)),
      "storage/ab/abcd": bytesOf("file"),
    });
    for (let at = 0; at < archive.length; at++) {
      const damaged = archive.slice();
      damaged[at]! ^= 1 << (at % 8);
      await assert.rejects(
        extractArchive(streamOf(damaged), join(folder, "unpacked")),
        ArchiveError,
        `byte ${at}`,
      );
    }
    assert.deepEqual(await Array.fromAsync(Deno.readDir(folder)), []);
  }));

Deno.test("[BK4] an archive truncated anywhere is rejected without leftovers", () =>
  withFolder(async (folder) => {
    const small = await archiveOf({ "data.db": bytesOf("the database ".repeat(50)) });
    const large = await archiveOf({ "data.db": randomBytes(2_200_000) });
    const cuts = [
      ...Array.from({ length: small.length }, (_, length) => small.subarray(0, length)),
      ...Array.from({ length: 12 }, (_, part) => large.subarray(0, Math.floor(large.length * part / 12))),
      large.subarray(0, -1),
    ];
    for (const cut of cuts) {
      await assert.rejects(
        extractArchive(streamOf(cut, 100_000), join(folder, "unpacked")),
        ArchiveError,
        `${cut.length} bytes`,
      );
    }
    assert.deepEqual(await Array.fromAsync(Deno.readDir(folder)), []);
  }));

const ab = "storage/ab/abcd";
const hostile: readonly {
  readonly what: string;
  readonly entries: readonly ForeignEntry[];
  readonly expected: RegExp;
}[] = [
  {
    what: "a name that leads out",
    entries: [database, { name: "storage/../../evil" }],
    expected: /an unexpected file/,
  },
  {
    what: "a name that leads up at its end",
    entries: [database, { name: "storage/ab/.." }],
    expected: /an unexpected file/,
  },
  { what: "an absolute name", entries: [database, { name: "/tmp/evil" }], expected: /an unexpected file/ },
  { what: "a name of another kind", entries: [database, { name: "lock" }], expected: /an unexpected file/ },
  { what: "a hidden file", entries: [database, { name: "storage/.ssh/x" }], expected: /an unexpected file/ },
  { what: "a folder's own name", entries: [database, { name: "storage" }], expected: /an unexpected file/ },
  {
    what: "a very long name",
    entries: [database, { name: `storage/${"a".repeat(300)}` }],
    expected: /an unexpected file/,
  },
  {
    what: "a folder",
    entries: [database, { name: "storage/ab/", type: "directory" }],
    expected: /not a regular file/,
  },
  {
    what: "a symbolic link",
    entries: [database, { name: ab, type: "symlink", linkname: "/etc" }],
    expected: /not a regular file/,
  },
  {
    what: "a hard link",
    entries: [database, { name: ab, type: "link", linkname: "data.db" }],
    expected: /not a regular file/,
  },
  {
    what: "a device",
    entries: [database, { name: ab, type: "character-device" }],
    expected: /not a regular file/,
  },
  { what: "a pipe", entries: [database, { name: ab, type: "fifo" }], expected: /not a regular file/ },
  { what: "one name twice", entries: [database, database], expected: /twice/ },
  {
    what: "a file where a folder is needed",
    entries: [database, { name: "storage/ab" }, { name: ab }],
    expected: /conflicts with/,
  },
  {
    what: "a part that the manifest does not name",
    entries: [database, { name: "logs.db" }],
    expected: /an unexpected file/,
  },
  { what: "no database", entries: [{ name: ab }], expected: /part "database" .* is missing/ },
  { what: "a second manifest", entries: [database, manifestEntry], expected: /an unexpected file/ },
];

for (const { what, entries, expected } of hostile) {
  Deno.test(`[BK5] an archive with ${what} is rejected`, () =>
    withFolder(async (folder) => {
      const archive = await foreignArchive([manifestEntry, ...entries]);
      assert.match((await refusal(archive, folder)).message, expected);
    }));
}

Deno.test("[BK5] an archive without manifest or checksums, or with files after them, is rejected", () =>
  withFolder(async (folder) => {
    const refused = async (entries: readonly ForeignEntry[], expected: RegExp, sums = false) =>
      assert.match((await refusal(await foreignArchive(entries, { sums }), folder)).message, expected);
    await refused([database, manifestEntry], /does not start with a manifest/, true);
    await refused([manifestEntry, database], /checksums are missing/);
    await refused([manifestEntry, database, { name: "checksums.json", body: "{}" }], /checksum list/);
    await refused([], /does not start/);
    const whole = await foreignArchive([manifestEntry, database]);
    await extractArchive(streamOf(whole), join(folder, "unpacked"));
    await Deno.remove(join(folder, "unpacked"), { recursive: true });
  }));

Deno.test("[BK6] wrong checksums and sizes are rejected; the message names the file", () =>
  withFolder(async (folder) => {
    const tar = new TextDecoder("latin1").decode(await tarOf("the database"));
    const other = tar.replace("the database", "other things");
    const swapped = await packed(Uint8Array.from(other, (character) => character.charCodeAt(0)));
    assert.match((await refusal(swapped, folder)).message, /wrong checksum of "data\.db"/);
  }));

Deno.test("[BK7] a file that is no archive, or has a newer format, is rejected with the reason", () =>
  withFolder(async (folder) => {
    const rejects = async (archive: Uint8Array, expected: RegExp) => {
      assert.match((await refusal(archive, folder)).message, expected);
      await assert.rejects(readManifest(streamOf(archive)), ArchiveError);
    };
    await rejects(bytesOf("SQLite format 3\0 and more"), /Not a backup archive/);
    await rejects(new Uint8Array(0), /truncated/);
    await rejects(await packed(bytesOf("no tar at all, but compressed".repeat(100))), /damaged/);
    const newer = JSON.stringify({ ...manifest, format: 2, syncline: "9.0.0", parts: ["moon"] });
    await rejects(
      await foreignArchive([{ name: "manifest.json", body: newer }, database]),
      /newer version \(9\.0\.0\)/,
    );
    await rejects(await foreignArchive([{ name: "manifest.json", body: "{" }, database]), /not JSON/);
    await rejects(await foreignArchive([{ name: "manifest.json", body: "{}" }, database]), /manifest/);
  }));

Deno.test("[BK8] decompression bombs are rejected", () =>
  withFolder(async (folder) => {
    const bomb = frame(new Uint8Array(200 << 20));
    assert.match((await refusal(bomb, folder)).message, /cannot decompress|unexpected zstd/);
    const zeros = new Uint8Array(64 << 20);
    const tail = await packed(new Uint8Array(await new Blob([await tarOf("small"), zeros]).arrayBuffer()));
    assert.match((await refusal(tail, folder)).message, /too much data outside of files/);
    const whole = await archiveOf({ "data.db": bytesOf("small") });
    const twice = new Uint8Array(await new Blob([whole, whole]).arrayBuffer());
    assert.match((await refusal(twice, folder)).message, /data after its end/);
  }));

Deno.test("[BK8] an archive larger than the free disk space is rejected before it is unpacked", () =>
  withFolder(async (folder) => {
    const { message } = await refusal(await petabyteArchive(), folder, UnpackSpaceError);
    assert.match(message, /Not enough disk space to unpack "data\.db"/);
  }));

Deno.test("[BK9] a failed write rejects with the reason and aborts the target", async () => {
  const fails = async (entries: Parameters<typeof writeArchive>[2], expected: RegExp) => {
    let aborted: unknown = null;
    const target = new WritableStream<Uint8Array>({ abort: (reason) => void (aborted = reason) });
    await assert.rejects(writeArchive(target, manifest, entries), expected);
    assert.match(String(aborted), expected);
  };
  const entry = (name: string, size: number, body: ReadableStream<Uint8Array>) =>
    (async function* () {
      yield { name, size, open: () => Promise.resolve(body) };
    })();
  await fails(entry("data.db", 5, streamOf(bytesOf("four"))), /data\.db/);
  await fails(entry("data.db", 3, streamOf(bytesOf("four"))), /data\.db/);
  await fails(entry("../evil", 4, streamOf(bytesOf("four"))), /evil/);
  await fails(entry("logs.db", 4, streamOf(bytesOf("four"))), /logs\.db/);
  const broken = new ReadableStream<Uint8Array>({ pull: () => Promise.reject(new Error("disk on fire")) });
  await fails(entry("data.db", 4, broken), /disk on fire/);

  const full = new WritableStream<Uint8Array>({ write: () => Promise.reject(new Error("no space left")) });
  const much = { "data.db": randomBytes(30 << 20) };
  await assert.rejects(writeArchive(full, manifest, entriesOf(much)), /no space left/);
});

Deno.test("[BK9] a failing source is not reported as a bad archive, and an existing folder is not changed", () =>
  withFolder(async (folder) => {
    const archive = await archiveOf({ "data.db": randomBytes(2_000_000) });
    let sent = 0;
    const failing = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent > 1_500_000) throw new Error("connection lost");
        controller.enqueue(archive.slice(sent, sent += 100_000));
      },
    });
    await assert.rejects(extractArchive(failing, join(folder, "unpacked")), /^Error: connection lost$/);
    assert.deepEqual(await Array.fromAsync(Deno.readDir(folder)), []);
    await Deno.writeTextFile(join(folder, "mine"), "x");
    await assert.rejects(extractArchive(streamOf(archive), folder), Deno.errors.AlreadyExists);
    assert.equal(await Deno.readTextFile(join(folder, "mine")), "x");
  }));

/** The unpacked tar of a small archive with a text as database. */
async function tarOf(database: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(
    zstdDecompressSync(await foreignArchive([manifestEntry, { name: "data.db", body: database }])),
  );
}

function bytesEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
