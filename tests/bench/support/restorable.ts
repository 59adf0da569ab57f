/** Makes a replica with a large snapshot and many commits behind it, without a server: by the engine and the shipper alone. */
import { join } from "node:path";
import {
  openJournalReader,
  openWriterDatabase,
  type SchemaDefinition,
  type TableDefinition,
} from "../../../mod/engine/mod.ts";
import { createBackup } from "../../../mod/ops/backups/mod.ts";
import { openTarget } from "../../../mod/ops/replication/mod.ts";
import { Shipper } from "../../../mod/ops/replication/shipper.ts";

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
}

/** Commits between two segments. */
const COMMITS_SHIPPED = 8_000;
const SESSIONS = 256;
/** From one commit to the next, as at 500 a second. */
const STEP_MS = 2;

function tableOf(indexes: TableDefinition["indexes"]): TableDefinition {
  const validate = (fields: Record<string, unknown>) => fields as ReturnType<TableDefinition["validate"]>;
  return { indexes, searchIndexes: [], vectorIndexes: [], fingerprint: "1", validate };
}

const schema: SchemaDefinition = new Map([
  ["accounts", tableOf([{ name: "by_account_id", fields: ["id"] }])],
  ["notes", tableOf([])],
]);

let state = 0x2545_f491;
function random(end: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor(state / 2 ** 32 * end);
}

/** Gives back where the replica lies, and how large the database is. */
export async function makeRestorable(
  { folder, notes, accounts, commits, group = 16 }: RestorableOptions,
): Promise<{ readonly replica: string; readonly databaseBytes: number }> {
  const dataDir = join(folder, "data");
  const replica = join(folder, "replica");
  await Deno.mkdir(dataDir, { recursive: true });
  const path = join(dataDir, "data.db");
  let now = Date.now() - commits * STEP_MS;
  using db = openWriterDatabase(path, {
    journal: { kind: "on", pendingBytesMax: 2 ** 32 },
    now: () => now,
  });
  db.applySchema(schema);
  const ids: string[] = [];
  const fill = (
    table: string,
    { count, fields }: { count: number; fields: (n: number) => Record<string, unknown> },
  ) => {
    for (let made = 0; made < count;) {
      db.openGroup();
      const tx = db.beginMutation({ at: now });
      for (let more = 0; more < 500 && made < count; more++) {
        const id = tx.insert(table, fields(made++));
        if (table === "accounts") ids.push(id);
      }
      db.releaseMutation();
      db.commitGroup("");
    }
  };
  fill("accounts", { count: accounts, fields: (id) => ({ id, balance: 1_000_000 }) });
  fill("notes", { count: notes, fields: (n) => ({ n, text: text() }) });
  await using target = await openTarget({ kind: "folder", path: replica }, { make: true });
  using journal = openJournalReader(path);
  let wanted = false;
  await using shipper = new Shipper({
    target,
    journal,
    claim: { instance: crypto.randomUUID(), host: "bench", since: new Date().toISOString() },
    snapshotEveryMs: 30 * 86_400_000,
    keepMs: 7 * 86_400_000,
    now: () => now,
    side: {
      confirmed(row) {
        while (db.confirmJournal(row));
      },
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
  const balances = ids.map(() => 1_000_000);
  for (let done = 0, groups = 0; done < commits; groups++) {
    db.openGroup();
    for (let call = 0; call < group && done < commits; call++, done++) {
      now += STEP_MS;
      const tx = db.beginMutation({ at: now });
      const from = random(accounts);
      const to = (from + 1 + random(accounts - 1)) % accounts;
      move(tx, { at: from, by: -1 });
      move(tx, { at: to, by: 1 });
      db.releaseMutation();
      const session = `6f1f3c9e-0000-4000-8000-${String(done % SESSIONS).padStart(12, "0")}`;
      // Each counts its own.
      db.saveRecord(
        { sessionId: session, requestId: Math.floor(done / SESSIONS), principal: null },
        '["success",null]',
      );
    }
    db.commitGroup("");
    if (groups % Math.ceil(COMMITS_SHIPPED / group) === 0) await shipper.ship();
  }
  await shipper.ship();
  return { replica, databaseBytes: (await Deno.stat(path)).size };

  function move(tx: ReturnType<typeof db.beginMutation>, { at, by }: { at: number; by: number }): void {
    balances[at] = (balances[at] ?? 0) + by;
    tx.patch(ids[at] ?? "", { balance: balances[at] });
  }
}

/** About a kilobyte that does not pack to nothing. */
function text(): string {
  let all = "";
  while (all.length < 900) all += `${random(2 ** 31).toString(36)} `;
  return all;
}
