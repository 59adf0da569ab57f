/** Finds the cluster of a database, or creates it from this server's data. Writes nothing if this server cannot join. */
import { setTimeout as wait } from "node:timers/promises";
import { ClusterError } from "./cluster_error.ts";
import { AwayError } from "./connection.ts";
import type { ClusterDatabase } from "./database.ts";
import { canCreate, createCluster, type Identity, readIdentity } from "./identity.ts";
import { clusterLimits } from "./limits.ts";
import { beginHistory, inspectDatabase, type LocalDatabase, undoHistory } from "./local_database.ts";

export interface JoinOptions {
  readonly secret: string;
  readonly dataDir: string;
  /** Returns the content of the service's key file, which is created if it is missing. */
  readonly serviceKey: () => Promise<string>;
  /** Writes the cluster's key to that file. */
  readonly useServiceKey: (text: string) => Promise<void>;
  /** Time to wait for the database. */
  readonly startMs?: number;
}

/** Throws a `ClusterError` if this server cannot join. */
export async function findOrCreate(options: JoinOptions, database: ClusterDatabase): Promise<Identity> {
  const { secret, dataDir, serviceKey, useServiceKey } = options;
  await connect(database, options.startMs ?? clusterLimits.startMs);
  const { address, rows: connection, statements } = database;
  const local = await inspectDatabase(dataDir);
  const known = await readIdentity(connection, { address, secret, statements });
  if (known !== null) {
    checkSameCluster(known, { local, dataDir, database });
    await useServiceKey(known.serviceKey);
    return known;
  }
  if (local.kind === "member" && local.position.seq > 0) {
    throw new ClusterError(
      `The data in "${dataDir}" belongs to cluster ${local.clusterId}, which is not at ${database.text}`,
    );
  }
  if (!await canCreate(connection, address)) return await joinCreated(options, database);
  const text = await serviceKey();
  const made = local.kind === "none";
  const id = local.kind === "member" ? local.clusterId : crypto.randomUUID();
  const { generation, seq, ts, sum } = local.kind === "member" ? local.position : beginHistory(dataDir, id);
  if (generation === null) throw new Error("The new history has no generation");
  const identity = { id, generation, first: { seq, ts, sum }, serviceKey: text };
  try {
    if (await createCluster(connection, identity, { address, secret })) return identity;
  } catch (error) {
    if (await isNotCreated(error, { database, secret, id })) await undoHistory(dataDir, { made });
    throw error;
  }
  await undoHistory(dataDir, { made });
  return await joinCreated(options, database);
}

async function connect(database: ClusterDatabase, startMs: number): Promise<void> {
  const until = performance.now() + startMs;
  for (let tries = 0;; tries++) {
    try {
      return await database.rows.open();
    } catch (error) {
      if (!(error instanceof AwayError) || performance.now() > until) throw error;
      if (tries === 0) database.logOutage(error);
      await wait(clusterLimits.reconnectMs);
    }
  }
}

/** Joins the cluster that another server has created at the same time. The tables may also belong to another program. */
async function joinCreated(options: JoinOptions, database: ClusterDatabase): Promise<Identity> {
  const { secret, dataDir, useServiceKey } = options;
  const { address, rows: connection, statements } = database;
  const known = await readIdentity(connection, { address, secret, statements });
  if (known === null) {
    throw new ClusterError(
      `The schema at ${database.text} contains other tables. Select another one with ?schema=name`,
    );
  }
  checkSameCluster(known, { local: await inspectDatabase(dataDir), dataDir, database });
  await useServiceKey(known.serviceKey);
  return known;
}

/** Returns `false` if the cluster may have been created although its creation failed, because the response was lost. */
async function isNotCreated(
  error: unknown,
  { database, secret, id }: {
    readonly database: ClusterDatabase;
    readonly secret: string;
    readonly id: string;
  },
): Promise<boolean> {
  if (!(error instanceof AwayError)) return true;
  const { address, rows: connection, statements } = database;
  try {
    // Waits for the transaction if it is still open.
    if (await canCreate(connection, address)) return true;
    const known = await readIdentity(connection, { address, secret, statements });
    return known !== null && known.id !== id;
  } catch {
    return false;
  }
}

function checkSameCluster(
  known: Identity,
  { local, dataDir, database }: {
    readonly local: LocalDatabase;
    readonly dataDir: string;
    readonly database: ClusterDatabase;
  },
): void {
  if (local.kind === "own") {
    throw new ClusterError(
      `There is already a cluster at ${database.text}, and the data in "${dataDir}" belongs to a single server. ` +
        "Pass an empty folder with --data, or select another schema",
    );
  }
  const { id, generation } = known;
  if (local.kind === "member" && (local.clusterId !== id || local.position.generation !== generation)) {
    throw new ClusterError(
      `The data in "${dataDir}" belongs to cluster ${local.clusterId}, but the cluster at ${database.text} is ${id}`,
    );
  }
}
