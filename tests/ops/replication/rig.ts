/** A database with a journal, a shipper and a target in one process, advanced by the test, with a model of every ts. */
import assert from "node:assert/strict";
import { join } from "node:path";
import {
  openExport,
  openJournalReader,
  openWriterDatabase,
  type WriterDatabase,
} from "../../../mod/engine/mod.ts";
import { createBackup } from "../../../mod/ops/backups/mod.ts";
import { applyStagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import {
  listGenerations,
  openTarget,
  planRestore,
  type RestorePoint,
  type StagedPoint,
  stagePoint,
} from "../../../mod/ops/replication/mod.ts";
import type { ObjectLocation, ObjectStore } from "../../../mod/kit/locations/object_store.ts";
import { Shipper, type ShipperOptions } from "../../../mod/ops/replication/shipper.ts";
import { anyTable, schemaOf } from "../../engine/support.ts";

const by_n = { name: "by_n", fields: ["n"] };
const by_text = { name: "by_text", searchField: "text", filterFields: ["n"] };

export const schemas = [
  schemaOf({ items: anyTable({ indexes: [by_n], fingerprint: "1" }), _jobs: anyTable({ fingerprint: "1" }) }),
  schemaOf({
    items: anyTable({ indexes: [by_n], searchIndexes: [by_text], fingerprint: "2" }),
    _jobs: anyTable(),
  }),
  schemaOf({ items: anyTable({ fingerprint: "3" }), _jobs: anyTable(), more: anyTable({ indexes: [by_n] }) }),
];

/** Documents of all tables after a commit. */
export type Model = ReadonlyMap<string, string>;

export interface RigOptions extends Partial<Pick<ShipperOptions, "merges" | "keepMs" | "snapshotEveryMs">> {
  readonly seed?: number;
  readonly pendingBytesMax?: number;
  /** Maximum size of the database in pages of 4 KiB, like a full disk. */
  readonly pagesMax?: number;
  /** Its target. Default: a separate folder. */
  readonly place?: ObjectLocation;
  /** Wraps the target of the shipper. */
  readonly through?: (target: ObjectStore) => ObjectStore;
}

export class Rig implements AsyncDisposable {
  readonly #options: RigOptions;
  readonly folder: string;
  readonly dataDir: string;
  readonly replica: string;
  /** By ts. */
  readonly models: Model[] = [new Map()];
  /** Time of each commit, by ts. */
  readonly times: number[] = [0];
  now = 1_700_000_000_000;
  /** Offset by which the clock is set ahead. */
  jumpedMs = 0;
  db: WriterDatabase;
  shipper: Shipper;
  #resources = new AsyncDisposableStack();
  #random: number;
  #snapshots: Promise<void>[] = [];
  #schema = 0;

  private constructor(options: RigOptions, folder: string) {
    this.#options = options;
    this.folder = folder;
    this.dataDir = join(folder, "data");
    this.replica = join(folder, "replica");
    this.#random = options.seed ?? 1;
    Deno.mkdirSync(this.dataDir, { recursive: true });
    this.db = undefined as unknown as WriterDatabase;
    this.shipper = undefined as unknown as Shipper;
  }

  static async start(options: RigOptions = {}): Promise<Rig> {
    const rig = new Rig(options, await Deno.makeTempDir({ prefix: "syncline-replica-" }));
    await rig.open();
    return rig;
  }

  /** Opens the database and a shipper, as a server's start does. */
  async open(): Promise<void> {
    const {
      pendingBytesMax = 2 ** 26,
      pagesMax,
      merges,
      keepMs = 7 * 86_400_000,
      snapshotEveryMs = 86_400_000,
    } = this.#options;
    this.db = openWriterDatabase(join(this.dataDir, "data.db"), {
      journal: { pendingBytesMax },
      now: () => this.now,
      ...(pagesMax !== undefined && { pagesMax }),
    });
    this.#resources.use(this.db);
    this.db.applySchema(schemas[this.#schema] ?? new Map());
    const journal = this.#resources.use(openJournalReader(join(this.dataDir, "data.db")));
    const place = await openTarget(this.#place, { make: true });
    const target = this.#resources.use(this.#options.through?.(place) ?? place);
    const { db } = this;
    this.shipper = this.#resources.use(
      new Shipper({
        target,
        journal,
        claim: { instance: crypto.randomUUID(), host: "here", since: new Date().toISOString() },
        snapshotEveryMs,
        keepMs,
        ...(merges && { merges }),
        side: {
          confirmed(row) {
            while (db.confirmJournal(row));
          },
          restart: (restart) => db.restartJournal(restart),
          snapshotWanted: () => void this.#snapshots.push(this.#takeSnapshot()),
        },
        now: () => this.now,
        steady: () => this.now - this.jumpedMs,
        wait: () => Promise.resolve(),
      }),
    );
  }

  /** Stops everything at once, like a kill: nothing more is shipped. */
  async close(): Promise<void> {
    await Promise.all(this.#snapshots.splice(0));
    await this.#resources.disposeAsync();
    this.#resources = new AsyncDisposableStack();
  }

  async restart(): Promise<void> {
    await this.close();
    await this.open();
  }

  /** Ships commits and requested snapshots. */
  async ship(): Promise<void> {
    await this.shipper.ship();
    while (this.#snapshots.length > 0) await Promise.all(this.#snapshots.splice(0));
  }

  pick(count: number): number {
    this.#random = (this.#random * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor(this.#random / 2 ** 31 * count);
  }

  /** Sets the clock. */
  jump(ms: number): void {
    this.now += ms;
    this.jumpedMs += ms;
  }

  changeSchema(): void {
    this.#schema = (this.#schema + 1) % schemas.length;
    this.db.applySchema(schemas[this.#schema] ?? new Map());
  }

  /** A group of some commits of some changes each. */
  group(): void {
    this.db.openGroup();
    for (let commit = this.pick(3); commit >= 0; commit--) {
      this.now += 1 + this.pick(500);
      const tx = this.db.beginMutation({ at: this.now });
      const model = new Map(this.models.at(-1));
      for (let change = this.pick(3); change >= 0; change--) this.#change(tx, model);
      const entry = this.db.releaseMutation();
      if (entry !== null) {
        this.models[entry.ts] = model;
        this.times[entry.ts] = this.now;
      }
    }
    this.db.commitGroup("");
  }

  #change(tx: ReturnType<WriterDatabase["beginMutation"]>, model: Map<string, string>): void {
    const ids = [...model.keys()];
    const id = ids[this.pick(ids.length)];
    const n = this.pick(100);
    const fields = { n, text: (n % 5 === 0 ? "einige Wörter " : "some words ") + "x".repeat(this.pick(50)) };
    const kind = this.pick(6);
    let written = id;
    if (id === undefined || kind < 3) written = tx.insert(kind === 0 ? "_jobs" : "items", fields);
    else if (kind < 5) tx.patch(id, fields);
    else tx.delete(id);
    const doc = written === undefined ? null : tx.get(written);
    if (written === undefined) return;
    if (doc === null) model.delete(written);
    else model.set(written, JSON.stringify(doc));
  }

  get #place(): ObjectLocation {
    return this.#options.place ?? { kind: "folder", path: this.replica };
  }

  async target(): Promise<ObjectStore> {
    return await openTarget(this.#place, { make: false });
  }

  /** Restores a point into a new folder. Returns the staged restore and the restored documents. */
  async restore(
    point: RestorePoint,
    now = Date.now(),
  ): Promise<{ readonly staged: StagedPoint; readonly model: Model; readonly dataDir: string }> {
    await using target = await this.target();
    const plan = planRestore(await listGenerations(target), point, { now, location: target.location });
    const dataDir = await Deno.makeTempDir({ dir: this.folder, prefix: "restored-" });
    const staged = await stagePoint(target, plan, { dataDir, localFiles: false });
    assert.notEqual(await applyStagedRestore(dataDir, new Date()), null);
    return { staged, model: documentsIn(join(dataDir, "data.db")), dataDir };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    await Deno.remove(this.folder, { recursive: true });
  }

  async #takeSnapshot(): Promise<void> {
    const out = join(await Deno.makeTempDir({ dir: this.folder }), "snapshot.tar.zst");
    const { dataDir } = this;
    const { ts, history } = await createBackup({
      dataDir,
      out,
      withAux: false,
      withFiles: false,
      includeSecret: false,
    });
    await this.shipper.addSnapshot({ path: out, ts, history, at: this.now });
  }
}

/** All documents of a database, by id. */
export function documentsIn(path: string): Model {
  using all = openExport(path);
  const found = new Map<string, string>();
  for (const table of all.tables) {
    for (const text of all.documents(table)) found.set((JSON.parse(text) as { _id: string })._id, text);
  }
  return found;
}

export function sorted(model: Model | undefined): (readonly [string, string])[] {
  return [...model ?? []].sort(([a], [b]) => a < b ? -1 : 1);
}
