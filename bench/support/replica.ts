/**
 * Creates a replica with a large snapshot and many later commits, without a server. The journal rows of the commits are
 * generated, because executing the commits would take many times as long as the restore.
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
import { mulberry32, WORKLOAD_SEED } from "../../tests/support/processes/random.ts";

export interface ReplicaOptions {
  /** Empty folder for the database and the replica. */
  readonly folder: string;
  /** Documents of about a kilobyte in the snapshot. */
  readonly notes: number;
  readonly accounts: number;
  /** Transfers between two accounts, each with a replay record. */
  readonly commits: number;
  /** Commits of each group. Default: 16, as under load. */
  readonly groupSize?: number;
  /** Rules for merging segments. Default: those of servers. */
  readonly merges?: readonly MergeRule[];
}

export interface Replica {
  /** Path of the replica. */
  readonly path: string;
  readonly databaseBytes: number;
  readonly segments: number;
  readonly segmentBytesMax: number;
}

const DOCUMENTS_PER_GROUP = 5_000;
const COMMITS_PER_SEGMENT = 8_000;
const SESSIONS = 256;
/** Time between two commits, as at 500 per second. */
const COMMIT_INTERVAL_MS = 2;
const NOTE_CHARS = 900;

/** Returns rules that merge all segments of `commits` commits into one. */
export function mergeIntoOne(commits: number): readonly MergeRule[] {
  return [{ spanMs: Infinity, pieces: Math.ceil(commits / COMMITS_PER_SEGMENT), bytes: Infinity }];
}

function tableOf(indexes: TableDefinition["indexes"]): TableDefinition {
  const validate = (fields: Record<string, unknown>) => fields as ReturnType<TableDefinition["validate"]>;
  return { indexes, searchIndexes: [], vectorIndexes: [], fingerprint: "1", validate };
}

const schema: SchemaDefinition = new Map([
  ["accounts", tableOf([{ name: "by_account_id", fields: ["id"] }])],
  ["notes", tableOf([])],
]);

export async function createReplica(options: ReplicaOptions): Promise<Replica> {
  const { folder, commits } = options;
  const dataDir = join(folder, "data");
  const database = join(dataDir, "data.db");
  const path = join(folder, "replica");
  await Deno.mkdir(dataDir, { recursive: true });
  let now = Date.now() - commits * COMMIT_INTERVAL_MS;
  const accounts = fillDatabase(database, { ...options, at: now });
  const journal = new MemoryJournal(startHistory(database, () => now));
  await using target = await openTarget({ kind: "folder", path }, { make: true });
  let isSnapshotWanted = false;
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
        throw new Error(`The journal is incomplete: ${reason}`);
      },
      snapshotWanted: () => isSnapshotWanted = true,
    },
  });
  await shipper.ship();
  if (!isSnapshotWanted) throw new Error("The shipper did not request a snapshot");
  const out = join(folder, "snapshot.tar.zst");
  const backup = await createBackup({ dataDir, out, withAux: false, withFiles: false, includeSecret: false });
  await shipper.addSnapshot({ path: out, ts: backup.ts, history: backup.history, at: now });
  await Deno.remove(out);
  const transfers = new Transfers(accounts);
  for (let done = 0, shipped = 0; done < commits;) {
    const count = Math.min(options.groupSize ?? 16, commits - done);
    now = transfers.commit(journal, { count, at: now });
    done += count;
    if (done - shipped < COMMITS_PER_SEGMENT && done < commits) continue;
    shipped = done;
    await shipper.ship();
  }
  // Waits for merges in progress.
  await shipper[Symbol.asyncDispose]();
  const sizes: number[] = [];
  for await (const { name, size } of target.list("generations/")) {
    if (name.includes("/segments/")) sizes.push(size);
  }
  const databaseBytes = (await Deno.stat(database)).size;
  return { path, databaseBytes, segments: sizes.length, segmentBytesMax: Math.max(...sizes) };
}

/** The stored accounts. */
interface Accounts {
  readonly ids: readonly string[];
  /** JSON of each account before and after its balance. */
  readonly texts: readonly (readonly [string, string])[];
  readonly lastCreationTime: number;
}

const BALANCE = 1_000_000;
/** Balances are not indexed, so index keys do not change. */
const UNCHANGED: CommitEntry["changes"][number]["keys"] = [["i", "same", "same"]];

/** Fills the database of the snapshot. Without a journal, which would double its size. */
function fillDatabase(
  path: string,
  { accounts, notes, at }: Pick<ReplicaOptions, "accounts" | "notes"> & { readonly at: number },
): Accounts {
  using db = openWriterDatabase(path, { now: () => at });
  db.applySchema(schema);
  const fill = (
    table: string,
    { count, at, fields }: { count: number; at: number; fields: (n: number) => Record<string, unknown> },
  ): { readonly id: string; readonly text: string }[] => {
    const stored: { readonly id: string; readonly text: string }[] = [];
    for (let inserted = 0; inserted < count;) {
      db.openGroup();
      const tx = db.beginMutation({ at });
      for (const end = Math.min(count, inserted + DOCUMENTS_PER_GROUP); inserted < end; inserted++) {
        tx.insert(table, fields(inserted));
      }
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
      const [before = "", after = ""] = text.split(String(BALANCE));
      return [before, after];
    }),
    lastCreationTime: _creationTime,
  };
}

/** Starts the history of the snapshot and the commits. */
function startHistory(path: string, now: () => number): JournalHead {
  using db = openWriterDatabase(path, { journal: { pendingBytesMax: 2 ** 20 }, now });
  if (db.history === null) throw new Error("The database has no history");
  return db.history;
}

/** Transfers of an amount of 1 between random accounts. */
class Transfers {
  readonly #accounts: Accounts;
  readonly #balances: number[];
  readonly #random = mulberry32(WORKLOAD_SEED);
  #done = 0;

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
    this.#balances = accounts.ids.map(() => BALANCE);
  }

  /** Appends the journal row of a group. Returns the time of its last commit. */
  commit(journal: MemoryJournal, { count, at }: { readonly count: number; readonly at: number }): number {
    const { ids, lastCreationTime } = this.#accounts;
    const entries: CommitEntry[] = [];
    const records: RecordRun[] = [];
    let now = at;
    for (let call = 0; call < count; call++, this.#done++) {
      now += COMMIT_INTERVAL_MS;
      const from = Math.floor(this.#random() * ids.length);
      const to = (from + 1 + Math.floor(this.#random() * (ids.length - 1))) % ids.length;
      const changes = [this.#changeBalance(from, -1), this.#changeBalance(to, 1)];
      const ts = journal.head.ts + entries.length + 1;
      entries.push({ ts, at: now, changes });
      const session = `6f1f3c9e-0000-4000-8000-${String(this.#done % SESSIONS).padStart(12, "0")}`;
      const answers = ['["success",null]'];
      // Request ids count per session.
      const oldest = Math.floor(this.#done / SESSIONS);
      records.push({ session, principal: "", oldest, answers, ts: [ts], chars: answers[0]?.length ?? 0 });
    }
    journal.append({ entries, records, lastCreationTime });
    return now;
  }

  #changeBalance(account: number, by: number): CommitEntry["changes"][number] {
    const balance = (this.#balances[account] ?? 0) + by;
    this.#balances[account] = balance;
    const [before, after] = this.#accounts.texts[account] ?? ["", ""];
    const id = this.#accounts.ids[account] ?? "";
    return { table: "accounts", tableNumber: 0, id, doc: `${before}${balance}${after}`, keys: UNCHANGED };
  }
}

/** Generates the same texts each time, which compress to about half. A cipher creates them in batches. */
function* noteTexts(): Generator<string, never> {
  const cipher = createCipheriv("aes-128-ctr", new Uint8Array(16), new Uint8Array(16));
  const zeros = new Uint8Array(NOTE_CHARS / 2 * 1_000);
  for (;;) {
    const texts = cipher.update(zeros).toString("hex");
    for (let start = 0; start < texts.length; start += NOTE_CHARS) {
      yield texts.slice(start, start + NOTE_CHARS);
    }
  }
}
