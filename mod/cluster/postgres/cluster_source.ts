/** Reads the log and the snapshots of a cluster for a point-in-time restore, without its secret and while its servers run. */
import {
  LocationError,
  type ObjectBody,
  type ObjectLocation,
  type ObjectStore,
} from "../../kit/locations/object_store.ts";
import type { JournalRow } from "../../engine/mod.ts";
import { type Clock, pause, steadyClock } from "../../kit/clock.ts";
import {
  type LoggedSnapshot,
  LogReplica,
  type LogSource,
  openTarget,
  type ReplicaReader,
} from "../../ops/replication/mod.ts";
import { AwayError, codeOf, PostgresConnection, type Statement } from "./connection.ts";
import { clusterLimits } from "./limits.ts";
import { addressText, type PostgresAddress } from "./postgres_address.ts";
import { rowOf } from "./postgres_log.ts";
import { FORMAT, type Statements, statementsFor } from "./statements.ts";

/** A connection for large responses over slow networks. */
export function restoreConnection(address: PostgresAddress): PostgresConnection {
  return new PostgresConnection({ address, use: "restore", statementMs: clusterLimits.restoreStatementMs });
}

/** Opens a cluster as a replica. Throws a `LocationError` if there is none, or it cannot be read. */
export async function openClusterReplica(
  { address, snapshots }: { readonly address: PostgresAddress; readonly snapshots: ObjectLocation },
): Promise<ReplicaReader> {
  await using opened = new AsyncDisposableStack();
  const connection = opened.use(restoreConnection(address));
  const statements = statementsFor(address.schema);
  const at = addressText(address);
  // Without retries, so that a wrong address fails at once.
  const generation = await withMessages(at, async () => {
    const [cluster] = await connection.query(statements.cluster);
    if (cluster === undefined) throw new LocationError("asked", `There is no cluster at ${at}`);
    if (Number(cluster["format"]) > FORMAT) {
      throw new LocationError(
        "target",
        `The cluster at ${at} has format ${
          cluster["format"]
        }, and this version knows ${FORMAT}: use the newer version`,
      );
    }
    return String(cluster["generation"]);
  });
  const archives = opened.use(await openTarget(snapshots, { make: false }));
  const source = new ClusterSource({ connection, statements, location: at, generation, archives });
  opened.move();
  return new LogReplica(source);
}

interface SourceParts {
  readonly connection: Pick<PostgresConnection, "query" | typeof Symbol.asyncDispose>;
  readonly statements: Statements;
  readonly location: string;
  readonly generation: string;
  readonly archives: ObjectStore;
  readonly clock?: Clock;
}

export class ClusterSource implements LogSource {
  readonly #parts: SourceParts;

  constructor(parts: SourceParts) {
    this.#parts = parts;
  }

  get location(): string {
    return this.#parts.location;
  }

  get generation(): string {
    return this.#parts.generation;
  }

  async snapshots(): Promise<readonly LoggedSnapshot[]> {
    const rows = await this.#ask(this.#parts.statements.snapshotTimes);
    return rows.map(({ seq, ts, sum, bytes, at }) => ({
      seq: Number(seq),
      ts: Number(ts),
      sum: String(sum),
      bytes: Number(bytes),
      at: Number(at),
    }));
  }

  async end(): Promise<number> {
    const [end] = await this.#ask(this.#parts.statements.end);
    return Number(end?.["seq"] ?? 0);
  }

  async rowsBehind(seq: number, upTo: number): Promise<readonly JournalRow[]> {
    const { rowsRead, restoreRowBytesRead } = clusterLimits;
    // Includes the row `seq` itself, if the log still has it.
    const count = Math.min(rowsRead, upTo - seq + 1);
    const rows = await this.#ask(this.#parts.statements.read, seq, count, restoreRowBytesRead);
    return rows.map((row) => ({ seq: Number(row["seq"]), row }))
      .filter((found) => found.seq > seq && found.seq <= upTo)
      .map((found) => rowOf(found.seq, found.row));
  }

  async open(seq: number): Promise<ObjectBody | null> {
    const { statements, archives } = this.#parts;
    const rows = await this.#ask(statements.snapshots);
    const name = rows.find((row) => Number(row["seq"]) === seq)?.["name"];
    return typeof name === "string" ? await archives.get(name) : null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { connection, archives } = this.#parts;
    await connection[Symbol.asyncDispose]();
    await archives[Symbol.asyncDispose]();
  }

  /** Repeats a read while the database is unreachable, for a bounded time. */
  async #ask(statement: Statement, ...values: unknown[]): Promise<readonly Record<string, unknown>[]> {
    const { connection, location, clock = steadyClock } = this.#parts;
    const { restoreAwayMs, restorePauseMs } = clusterLimits;
    return await withMessages(location, async () => {
      let awayAt: number | null = null;
      for (;;) {
        try {
          return await connection.query(statement, ...values);
        } catch (error) {
          if (!(error instanceof AwayError)) throw error;
          awayAt ??= clock.now();
          if (clock.now() - awayAt >= restoreAwayMs) throw error;
          await pause(clock, restorePauseMs);
        }
      }
    });
  }
}

/** Converts errors of the database into messages for the operator. */
async function withMessages<Result>(at: string, ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof LocationError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof AwayError) {
      throw new LocationError("away", `The cluster's database at ${at} cannot be reached: ${reason}`, {
        cause: error,
      });
    }
    const code = codeOf(error);
    if (code === null) throw error;
    // No such schema, table or column.
    const none = code === "3F000" || code === "42P01" || code === "42703";
    const what = none ? `There is no cluster at ${at}` : `The cluster's database at ${at} refuses: ${reason}`;
    throw new LocationError(none ? "asked" : "refused", what, { cause: error });
  }
}
