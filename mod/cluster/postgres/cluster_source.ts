/** The log and the snapshots of a cluster as who restores a point in time reads them: without its secret, and beside its servers. */
import type { JournalRow } from "../../engine/mod.ts";
import {
  type LoggedSnapshot,
  LogReplica,
  type LogSource,
  openTarget,
  ReplicaError,
  type ReplicaTarget,
  type TargetPlace,
} from "../../ops/replication/mod.ts";
import { AwayError, codeOf, Connection } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import { placeOf, type PostgresPlace } from "./place.ts";
import { rowOf } from "./postgres_log.ts";
import { FORMAT, type Statements, statementsFor } from "./statements.ts";

/** Opens a cluster as a replica. Throws a `ReplicaError` when there is none, or it cannot be read. */
export async function openClusterReplica(
  { place, snapshots }: { readonly place: PostgresPlace; readonly snapshots: TargetPlace },
): Promise<ReplicaTarget> {
  await using opened = new AsyncDisposableStack();
  const connection = opened.use(new Connection({ place, use: "restore" }));
  const statements = statementsFor(place.schema);
  const at = placeOf(place);
  const generation = await told(at, async () => {
    const [cluster] = await connection.query(statements.cluster);
    if (cluster === undefined) throw new ReplicaError("asked", `There is no cluster at ${at}`);
    if (Number(cluster["format"]) > FORMAT) {
      throw new ReplicaError(
        "target",
        `The cluster at ${at} has format ${
          cluster["format"]
        }, and this version knows ${FORMAT}: use the newer version`,
      );
    }
    return String(cluster["generation"]);
  });
  const archives = opened.use(await openTarget(snapshots, { make: false }));
  const source = new ClusterSource({ connection, statements, place: at, generation, archives });
  opened.move();
  return new LogReplica(source);
}

interface SourceParts {
  readonly connection: Connection;
  readonly statements: Statements;
  readonly place: string;
  readonly generation: string;
  readonly archives: ReplicaTarget;
}

class ClusterSource implements LogSource {
  readonly #parts: SourceParts;

  constructor(parts: SourceParts) {
    this.#parts = parts;
  }

  get place(): string {
    return this.#parts.place;
  }

  get generation(): string {
    return this.#parts.generation;
  }

  async snapshots(): Promise<readonly LoggedSnapshot[]> {
    const { connection, statements, place } = this.#parts;
    const rows = await told(place, () => connection.query(statements.snapshotTimes));
    return rows.map(({ seq, ts, sum, bytes, at }) => ({
      seq: Number(seq),
      ts: Number(ts),
      sum: String(sum),
      bytes: Number(bytes),
      at: Number(at),
    }));
  }

  async rowsBehind(seq: number): Promise<readonly JournalRow[]> {
    const { connection, statements, place } = this.#parts;
    const { rowsRead, rowBytesRead } = clusterLimits;
    const rows = await told(place, () => connection.query(statements.read, seq, rowsRead, rowBytesRead));
    return rows.filter((row) => Number(row["seq"]) > seq).map((row) => rowOf(Number(row["seq"]), row));
  }

  async download(seq: number, path: string): Promise<boolean> {
    const { connection, statements, place, archives } = this.#parts;
    const rows = await told(place, () => connection.query(statements.snapshots));
    const name = rows.find((row) => Number(row["seq"]) === seq)?.["name"];
    return typeof name === "string" && await archives.download(name, path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { connection, archives } = this.#parts;
    await connection[Symbol.asyncDispose]();
    await archives[Symbol.asyncDispose]();
  }
}

/** What the database says becomes a line for people. */
async function told<Result>(at: string, ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ReplicaError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof AwayError) {
      throw new ReplicaError("away", `The cluster's database at ${at} cannot be reached: ${reason}`, {
        cause: error,
      });
    }
    const code = codeOf(error);
    if (code === null) throw error;
    // No such schema, table or column.
    const none = code === "3F000" || code === "42P01" || code === "42703";
    const what = none ? `There is no cluster at ${at}` : `The cluster's database at ${at} refuses: ${reason}`;
    throw new ReplicaError(none ? "asked" : "refused", what, { cause: error });
  }
}
