/** Snapshots of a cluster, made by its leader: new servers start from one, and the log before the oldest is removed. */
import { join } from "node:path";
import { removeIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import type { MakeBackup } from "../../ops/backups/mod.ts";
import type { ObjectLocation } from "../../kit/locations/object_store.ts";
import { openStore } from "../../kit/locations/open_store.ts";
import type { PostgresConnection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

export interface Snapshot {
  readonly seq: number;
  readonly ts: number;
  readonly sum: string;
  /** Name of the archive at the target. */
  readonly name: string;
  readonly bytes: number;
  readonly ageMs: number;
}

/** Those that are there, the newest first. */
export async function listSnapshots(
  connection: PostgresConnection,
  statements: Statements,
): Promise<Snapshot[]> {
  const rows = await connection.query(statements.snapshots);
  return rows.map(({ seq, ts, sum, name, bytes, age_ms }) => ({
    seq: Number(seq),
    ts: Number(ts),
    sum: String(sum),
    name: String(name),
    bytes: Number(bytes),
    ageMs: Number(age_ms),
  }));
}

export interface SnapshotsOptions {
  readonly connection: PostgresConnection;
  readonly statements: Statements;
  readonly clusterId: string;
  readonly generation: string;
  readonly epoch: number;
  readonly dataDir: string;
  readonly target: ObjectLocation;
  /** Makes a backup without files, in a path of the data folder. */
  readonly makeBackup: MakeBackup;
  /** Newest row of the log, and the bytes that this server appended. */
  readonly appended: () => { readonly seq: number; readonly bytes: number };
  readonly log: Log;
}

/** Folder below the data folder in which snapshots are made. */
const OUTGOING = "outgoing-snapshot";

export class Snapshots implements AsyncDisposable {
  readonly #options: SnapshotsOptions;
  #running: Promise<void> | null = null;
  #failedAt = -Infinity;
  /** Whether there is a snapshot from which other servers can start. */
  #hasSnapshot = false;
  /** Appended bytes when the newest snapshot was made. */
  #bytesThen = 0;
  readonly #closing = new AbortController();

  constructor(options: SnapshotsOptions) {
    this.#options = options;
  }

  /** Makes a snapshot if one is due, one at a time. Never rejects. */
  tend(): Promise<void> {
    const { snapshotRetryMs, firstSnapshotRetryMs } = clusterLimits;
    const retryMs = this.#hasSnapshot ? snapshotRetryMs : firstSnapshotRetryMs;
    if (this.#closed || performance.now() - this.#failedAt < retryMs) {
      return Promise.resolve();
    }
    return this.#running ??= this.#tend().catch((error) => {
      this.#failedAt = performance.now();
      if (!this.#closed) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#options.log("warn", "No snapshot could be made for the cluster", { code: "cluster", reason });
      }
    }).finally(() => this.#running = null);
  }

  /** Aborts a snapshot in progress. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Returns the result of `work`; rejects on close, and abandons work that cannot be aborted. */
  async #unlessClosed<Result>(work: Promise<Result>): Promise<Result> {
    const { signal } = this.#closing;
    const closed = Promise.withResolvers<never>();
    const close = () => closed.reject(signal.reason);
    signal.addEventListener("abort", close, { once: true });
    if (signal.aborted) close();
    try {
      return await Promise.race([work, closed.promise]);
    } finally {
      signal.removeEventListener("abort", close);
    }
  }

  async #tend(): Promise<void> {
    const { connection, statements } = this.#options;
    const [newest] = await listSnapshots(connection, statements);
    this.#hasSnapshot = newest !== undefined;
    if (newest !== undefined && !this.#isDue(newest)) return;
    await this.#make();
    await this.#removeOld();
  }

  #isDue({ seq, ageMs }: Snapshot): boolean {
    const { snapshotRows, snapshotBytes, snapshotEveryMs } = clusterLimits;
    const appended = this.#options.appended();
    return appended.seq - seq >= snapshotRows || appended.bytes - this.#bytesThen >= snapshotBytes ||
      appended.seq > seq && ageMs >= snapshotEveryMs;
  }

  async #make(): Promise<void> {
    const { connection, statements, clusterId, generation, epoch, dataDir, target, makeBackup, log } =
      this.#options;
    const { signal } = this.#closing;
    const folder = join(dataDir, OUTGOING);
    const path = join(folder, "snapshot.tar.zst");
    const { bytes: bytesThen } = this.#options.appended();
    await removeIfThere(folder);
    try {
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      const { history, ts, bytes } = await this.#unlessClosed(makeBackup({
        out: path,
        withAux: false,
        withFiles: false,
        includeSecret: false,
      }));
      if (history === null || history.generation !== generation) {
        throw new Error("The database is of another history");
      }
      const { seq, sum } = history;
      const name = `cluster-${clusterId}/${String(seq).padStart(16, "0")}-${ts}.tar.zst`;
      await using store = await openStore(target, { make: true, signal });
      await this.#unlessClosed(store.putFile(name, path));
      const added = await connection.query(statements.addSnapshot, epoch, seq, ts, sum, name, bytes);
      if (added.length === 0) throw new Error("Another server is the leader by now");
      this.#bytesThen = bytesThen;
      log("info", "A snapshot of the cluster was made", { ts, bytes });
    } finally {
      await removeIfThere(folder);
    }
  }

  /** Removes old snapshots, and the log before the oldest kept snapshot. */
  async #removeOld(): Promise<void> {
    const { connection, statements, target } = this.#options;
    const snapshots = await listSnapshots(connection, statements);
    const oldest = snapshots[clusterLimits.snapshotsKept - 1];
    if (oldest === undefined) return;
    const { signal } = this.#closing;
    await using store = await openStore(target, { signal });
    for (const { seq, name } of snapshots.slice(clusterLimits.snapshotsKept)) {
      await connection.query(statements.removeSnapshot, seq);
      await store.delete(name);
    }
    const { rowsTrimmed, rowBytesTrimmed } = clusterLimits;
    while (!this.#closed) {
      const removed = await connection.query(statements.trim, oldest.seq, rowsTrimmed, rowBytesTrimmed);
      if (removed.length === 0) return;
    }
  }
}
