/**
 * Makes a replica with a large snapshot and many commits behind it, without a server: the snapshot by the engine, the
 * commits' rows by themselves, since their writing would take many times as long as the restore that is measured.
 */
import { createCipheriv } from "node:crypto";
import { join } from "node:path";
import {
  type CommitEntry,
  type JournalHead,
  openWriterDatabase,
  type SchemaDefinition,
  type TableDefinition,
} from "../../mod/engine/mod.ts";
import type { RecordRun } from "../../mod/engine/record_runs.ts";
import { createBackup } from "../../mod/ops/backups/mod.ts";
import { openTarget } from "../../mod/ops/replication/mod.ts";
import type { MergeRule } from "../../mod/ops/replication/merger.ts";
import { Shipper } from "../../mod/ops/replication/shipper.ts";
import { MemoryJournal } from "../../tests/ops/replication/memory_journal.ts";

export interface RestorableOptions {
  /** An empty folder, for the database and the replica. */
  readonly folder: string;
  /** Documents of about a kilobyte that the snapshot holds. */
  readonly notes: number;
  readonly accounts: number;
  /** Transfers between two accounts, each with a replay record. */
  readonly commits: number;
  /** Commits of a group: 16 as under load, or one. */
  readonly group?: number;
  /** When segments are merged, when not as servers do. */
  readonly merges?: readonly MergeRule[];
}

export interface Restorable {
  /** Where the replica lies. */
  readonly replica: string;
  readonly databaseBytes: number;
  /** How many segments it has, and the largest of them. */
  readonly segments: number;
  readonly segmentBytesMax: number;
}

/** Documents that one group of the fill inserts. */
const FILL_GROUP = 5_000;
/** Commits between two segments. */
const COMMITS_SHIPPED = 8_000;
const SESSIONS = 256;
/** From one commit to the next, as at 500 a second. */
const STEP_MS = 2;
const NOTE_CHARS = 900;

/** Rules by which all segments of so many commits become one. */
export function mergedToOne(commits: number): readonly MergeRule[] {
  return [{ spanMs: Infinity, pieces: Math.ceil(commits / COMMITS_SHIPPED), bytes: Infinity }];
}

function tableOf(indexes: TableDefinition["indexes"]): TableDefinition {
  const validate = (fields: Record<string, unknown>) => fields as ReturnType<TableDefinition["validate"]>;
  return { indexes, searchIndexes: [], vectorIndexes: [], fingerprint: "1", validate };
}

const schema: SchemaDefinition = new Map([
  ["accounts", tableOf([{ name: "by_account_id", fields: ["id"] }])],
  ["notes", tableOf([])],
]);

/** The same numbers each time, independent of earlier work. */
class Numbers {
  #state = 0x2545_f491;

  below(end: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(this.#state / 2 ** 32 * end);
  }
}

export async function makeRestorable(options: RestorableOptions): Promise<Restorable> {
  const { folder, commits } = options;
  const dataDir = join(folder, "data");
  const path = join(dataDir, "data.db");
  const replica = join(folder, "replica");
  await Deno.mkdir(dataDir, { recursive: true });
  let now = Date.now() - commits * STEP_MS;
  const accounts = fillDatabase(path, { ...options, at: now });
  const journal = new MemoryJournal(beginHistory(path, () => now));
  await using target = await openTarget({ kind: "folder", path: replica }, { make: true });
  let wanted = false;
  await using shipper = new Shipper({
    target,
    journal,
    claim: { instance: crypto.randomUUID(), host: "bench", since: new Date().toISOString() },
    snapshotEveryMs: 30 * 86_400_000,
    keepMs: 7 * 86_400_000,
    now: () => now,
    ...(options.merges && { merges: options.merges }),
    side: {
      confirmed: ({ seq }) => journal.confirm(seq),
      restart: ({ reason }) => {
        throw new Error(`The journal was lost: ${reason}`);
      },
      snapshotWanted: () => wanted = true,
    },
  });
  await shipper.ship();
  if (!wanted) throw new Error("No snapshot was asked for");
  const out = join(folder, "snapshot.tar.zst");
  const made = await createBackup({ dataDir, out, withAux: false, withFiles: false, includeSecret: false });
  await shipper.addSnapshot({ path: out, ts: made.ts, history: made.history, at: now });
  await Deno.remove(out);
  const transfers = new Transfers(accounts);
  for (let done = 0, shipped = 0; done < commits;) {
    const group = Math.min(options.group ?? 16, commits - done);
    now = transfers.commit(journal, { group, at: now });
    done += group;
    if (done - shipped < COMMITS_SHIPPED && done < commits) continue;
    shipped = done;
    await shipper.ship();
  }
  // Merged beside the last shipment.
  await shipper[Symbol.asyncDispose]();
  const sizes: number[] = [];
  for await (const { name, size } of target.list("generations/")) {
    if (name.includes("/segments/")) sizes.push(size);
  }
  const databaseBytes = (await Deno.stat(path)).size;
  return { replica, databaseBytes, segments: sizes.length, segmentBytesMax: Math.max(...sizes) };
}

/** The accounts as they are stored, with their ids. */
interface Accounts {
  readonly ids: readonly string[];
  /** Text before and after each balance. */
  readonly texts: readonly (readonly [string, string])[];
  readonly lastCreationTime: number;
}

const BALANCE = 1_000_000;
/** No index holds a balance: all keep what they hold. */
const UNCHANGED: CommitEntry["changes"][number]["keys"] = [["i", "same", "same"]];

/** Contents of the snapshot, without a journal, whose row would be as large again. */
function fillDatabase(
  path: string,
  { accounts, notes, at }: Pick<RestorableOptions, "accounts" | "notes"> & { readonly at: number },
): Accounts {
  using db = openWriterDatabase(path, { now: () => at });
  db.applySchema(schema);
  const fill = (
    table: string,
    { count, at, fields }: { count: number; at: number; fields: (n: number) => Record<string, unknown> },
  ): { readonly id: string; readonly text: string }[] => {
    const stored: { readonly id: string; readonly text: string }[] = [];
    for (let made = 0; made < count;) {
      db.openGroup();
      const tx = db.beginMutation({ at });
      for (const end = Math.min(count, made + FILL_GROUP); made < end; made++) tx.insert(table, fields(made));
      const { changes } = db.releaseMutation() ?? { changes: [] };
      db.commitGroup("");
      if (table === "accounts") { for (const { id, doc } of changes) stored.push({ id, text: doc ?? "" }); }
    }
    return stored;
  };
  const texts = noteTexts();
  fill("notes", { count: notes, at, fields: (n) => ({ n, text: texts.next().value }) });
  const stored = fill("accounts", { count: accounts, at, fields: (id) => ({ id, balance: BALANCE }) });
  const { _creationTime } = JSON.parse(stored.at(-1)?.text ?? "{}") as { readonly _creationTime: number };
  return {
    ids: stored.map(({ id }) => id),
    texts: stored.map(({ text }) => {
      const [before = "", behind = ""] = text.split(String(BALANCE));
      return [before, behind];
    }),
    lastCreationTime: _creationTime,
  };
}

/** Begins the history that the snapshot is a part of. */
function beginHistory(path: string, now: () => number): JournalHead {
  using db = openWriterDatabase(path, { journal: { pendingBytesMax: 2 ** 20 }, now });
  if (db.history === null) throw new Error("The database has no history");
  return db.history;
}

/** Moves of one between two accounts. */
class Transfers {
  readonly #accounts: Accounts;
  readonly #balances: number[];
  readonly #numbers = new Numbers();
  #done = 0;

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
    this.#balances = accounts.ids.map(() => BALANCE);
  }

  /** Adds the row of a group, as the engine would. Returns the time of its last commit. */
  commit(journal: MemoryJournal, { group, at }: { readonly group: number; readonly at: number }): number {
    const { ids, lastCreationTime } = this.#accounts;
    const entries: CommitEntry[] = [];
    const records: RecordRun[] = [];
    let now = at;
    for (let call = 0; call < group; call++, this.#done++) {
      now += STEP_MS;
      const from = this.#numbers.below(ids.length);
      const to = (from + 1 + this.#numbers.below(ids.length - 1)) % ids.length;
      const changes = [this.#moved(from, -1), this.#moved(to, 1)];
      const ts = journal.head.ts + entries.length + 1;
      entries.push({ ts, at: now, changes });
      const session = `6f1f3c9e-0000-4000-8000-${String(this.#done % SESSIONS).padStart(12, "0")}`;
      const answers = ['["success",null]'];
      // Each session counts its own.
      const oldest = Math.floor(this.#done / SESSIONS);
      records.push({ session, principal: "", oldest, answers, ts: [ts], chars: answers[0]?.length ?? 0 });
    }
    journal.append({ entries, records, lastCreationTime });
    return now;
  }

  #moved(at: number, by: number): CommitEntry["changes"][number] {
    const balance = (this.#balances[at] ?? 0) + by;
    this.#balances[at] = balance;
    const [before, behind] = this.#accounts.texts[at] ?? ["", ""];
    const id = this.#accounts.ids[at] ?? "";
    return { table: "accounts", tableNumber: 0, id, doc: `${before}${balance}${behind}`, keys: UNCHANGED };
  }
}

/** Texts that pack to about half of what they are, the same each time; made at once for many, by a cipher. */
function* noteTexts(): Generator<string, never> {
  const cipher = createCipheriv("aes-128-ctr", new Uint8Array(16), new Uint8Array(16));
  const zeros = new Uint8Array(NOTE_CHARS / 2 * 1_000);
  for (;;) {
    const texts = cipher.update(zeros).toString("hex");
    for (let at = 0; at < texts.length; at += NOTE_CHARS) yield texts.slice(at, at + NOTE_CHARS);
  }
}
