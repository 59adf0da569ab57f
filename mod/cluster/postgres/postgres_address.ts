/** The address of a cluster's database, parsed from its URL. */
import { ClusterError } from "./cluster_error.ts";

/** Connection parameters. */
export interface PostgresAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Schema with the tables of the cluster. */
  readonly schema: string;
  /** `null`: no TLS. Otherwise chain and name are verified with these root certificates, or those of the system. */
  readonly tls: { readonly rootFile: string | null } | null;
}

/** 56 characters: names of its channels are longer, and PostgreSQL cuts names after 63. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,55}$/;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]", "::1"]);
const MODES = ["disable", "verify-full"];

/**
 * Reads `postgres://user:password@host:port/database?schema=name&sslmode=verify-full&sslrootcert=file&host=/socket/folder`.
 * Certificates are verified unless the address is local or `sslmode=disable` is set. Throws a `ClusterError`, which does not
 * contain the password.
 */
export function parsePostgresUrl(text: string): PostgresAddress {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new ClusterError(
      "The address of the cluster's database is not a URL like postgres://user@host/database",
    );
  }
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") {
    throw new ClusterError(
      `The URL of the cluster's database must begin with postgres://, not ${url.protocol}//`,
    );
  }
  const { searchParams: parameters } = url;
  const schema = parameters.get("schema") ?? "syncline";
  if (!SCHEMA.test(schema)) {
    throw new ClusterError(
      `"${schema}" cannot be the schema of the cluster: use at most 56 lower-case letters, digits and _`,
    );
  }
  const known = ["schema", "sslmode", "sslrootcert", "host"];
  for (const name of parameters.keys()) {
    if (!known.includes(name)) {
      throw new ClusterError(
        `Unknown parameter "${name}" of the cluster's database. Known: ${known.join(", ")}`,
      );
    }
  }
  const host = parameters.get("host") ?? decodeURIComponent(url.hostname);
  const isHere = host.startsWith("/") || LOOPBACK.has(host);
  const mode = parameters.get("sslmode") ?? (isHere ? "disable" : "verify-full");
  if (!MODES.includes(mode)) {
    throw new ClusterError(`sslmode=${mode} does not verify the server: use ${MODES.join(" or ")}`);
  }
  const database = decodeURIComponent(url.pathname.slice(1));
  if (host === "" || database === "" || url.username === "") {
    throw new ClusterError(
      "The URL of the cluster's database must name user, host and database: postgres://user@host/database",
    );
  }
  return {
    host: host.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? 5432 : Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database,
    schema,
    tls: mode === "disable" ? null : { rootFile: parameters.get("sslrootcert") },
  };
}

/** Formats the address for messages, without the password. */
export function addressText({ host, port, database, schema }: PostgresAddress): string {
  return `${host.startsWith("/") ? host : `${host}:${port}`}/${database}, schema ${schema}`;
}
