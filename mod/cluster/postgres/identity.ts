/** Identity of a cluster: its id, the start of its history, and the key with which its servers sign. */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { ClusterError } from "./cluster_error.ts";
import { AwayError, codeOf, type PostgresConnection } from "./connection.ts";
import { addressText, type PostgresAddress } from "./postgres_address.ts";
import { createSql, FORMAT, quoted, type Statements } from "./statements.ts";

export interface Identity {
  readonly id: string;
  readonly generation: string;
  /** Position before the first row of the log. */
  readonly first: { readonly seq: number; readonly ts: number; readonly sum: string };
  readonly serviceKey: string;
}

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts the service's key with the secret of the cluster. */
function encrypt(text: string, { id, secret }: { readonly id: string; readonly secret: string }): Uint8Array {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", encryptionKey(secret, id), iv);
  cipher.setAAD(Buffer.from(id));
  const encrypted = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), encrypted]);
}

function decrypt(
  bytes: Uint8Array,
  { id, secret }: { readonly id: string; readonly secret: string },
): string {
  const given = Buffer.from(bytes);
  const decipher = createDecipheriv("aes-256-gcm", encryptionKey(secret, id), given.subarray(0, IV_BYTES));
  decipher.setAAD(Buffer.from(id));
  decipher.setAuthTag(given.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  const opened = Buffer.concat([decipher.update(given.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
  return opened.toString("utf8");
}

function encryptionKey(secret: string, id: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, id, "syncline cluster service key v1", 32));
}

/** Derives the secret with which followers authenticate at the leader. It does not reveal the configured secret. */
export function linkSecretOf(secret: string, id: string): string {
  return Buffer.from(hkdfSync("sha256", secret, id, "syncline cluster link v1", 32)).toString("hex");
}

interface IdentityOptions {
  readonly address: PostgresAddress;
  readonly secret: string;
  readonly statements: Statements;
}

/** Resolves with `null` if there is no cluster yet. Throws a `ClusterError` if this server cannot join the cluster. */
export async function readIdentity(
  connection: PostgresConnection,
  { address, secret, statements }: IdentityOptions,
): Promise<Identity | null> {
  let row;
  try {
    [row] = await connection.query(statements.cluster);
  } catch (error) {
    const code = codeOf(error);
    if (code === "3F000" || code === "42P01") return null;
    if (code === "42703") {
      throw new ClusterError(`The tables at ${addressText(address)} do not belong to a cluster`, {
        cause: error,
      });
    }
    throw refusal(error, address);
  }
  if (row === undefined) return null;
  const { format, id, generation, first_seq, first_ts, first_sum, service_key } = row;
  if (Number(format) > FORMAT) {
    throw new ClusterError(
      `The cluster at ${
        addressText(address)
      } has format ${format}, and this version knows ${FORMAT}: update this server`,
    );
  }
  if (typeof id !== "string" || typeof generation !== "string" || !(service_key instanceof Uint8Array)) {
    throw new ClusterError(`The tables at ${addressText(address)} do not belong to a cluster`);
  }
  let serviceKey: string;
  try {
    serviceKey = decrypt(service_key, { id, secret });
  } catch (error) {
    throw new ClusterError(
      `The cluster at ${addressText(address)} was made with another secret than --cluster-secret`,
      { cause: error },
    );
  }
  const first = { seq: Number(first_seq), ts: Number(first_ts), sum: String(first_sum) };
  return { id, generation, first, serviceKey };
}

/** Creates a cluster. Returns `false` if one or other tables exist. Throws a `ClusterError`. */
export async function createCluster(
  connection: PostgresConnection,
  { id, generation, first, serviceKey }: Identity,
  { address, secret }: Pick<IdentityOptions, "address" | "secret">,
): Promise<boolean> {
  const schema = quoted(address.schema);
  const encrypted = encrypt(serviceKey, { id, secret });
  try {
    await connection.transaction(async (ask) => {
      await makeSchema(ask, address.schema);
      await ask(createSql(address.schema));
      await ask(
        `insert into ${schema}.cluster (one, format, id, generation, first_seq, first_ts, first_sum, service_key)
         values (1, $1, $2, $3, $4, $5, $6, $7)`,
        FORMAT,
        id,
        generation,
        first.seq,
        first.ts,
        first.sum,
        encrypted,
      );
      await ask(
        `insert into ${schema}.lease (one, epoch, holder, address, until) values (1, 0, '', '', '-infinity')`,
      );
    });
    return true;
  } catch (error) {
    if (alreadyExists(error)) return false;
    throw refusal(error, address);
  }
}

/** Creates the tables and rolls back, to find errors early. `false` if tables exist. Throws a `ClusterError`. */
export async function canCreate(connection: PostgresConnection, address: PostgresAddress): Promise<boolean> {
  const undone = new Error("undone");
  try {
    await connection.transaction(async (ask) => {
      await makeSchema(ask, address.schema);
      await ask(createSql(address.schema));
      throw undone;
    });
  } catch (error) {
    if (error === undone || error instanceof AwayError && error.cause === undone) return true;
    if (alreadyExists(error)) return false;
    throw refusal(error, address);
  }
  return true;
}

/** Whether a schema, a table or the cluster's row exists. Another server may create them at the same time. */
function alreadyExists(error: unknown): boolean {
  return ["23505", "42P06", "42P07"].includes(codeOf(error) ?? "");
}

/** Creates the schema if it is missing. A user without the right to create schemas can use an existing one. */
export async function makeSchema(
  ask: (text: string, ...values: unknown[]) => Promise<readonly unknown[]>,
  schema: string,
): Promise<void> {
  const there = await ask("select 1 from pg_catalog.pg_namespace where nspname = $1", schema);
  if (there.length === 0) await ask(`create schema ${quoted(schema)}`);
}

/** Converts an error of the database into a message for the operator. Returns other errors unchanged. */
export function refusal(error: unknown, address: PostgresAddress): unknown {
  const code = codeOf(error);
  if (code === null) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const advice = code === "42501"
    ? ": grant this user the right to create the schema, or the ownership of the schema"
    : "";
  return new ClusterError(`The cluster's database at ${addressText(address)} refuses: ${reason}${advice}`, {
    cause: error,
  });
}
