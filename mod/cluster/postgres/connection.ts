/** A pipelined connection that reopens. Statements in flight reject with an `AwayError`: only callers can repeat them. */
// @ts-types="./driver.d.ts"
import pg from "pg";
import type { Client } from "./driver.d.ts";
import { clusterLimits } from "./limits.ts";
import type { PostgresAddress } from "./postgres_address.ts";

export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** The database is unreachable, or cannot execute statements now. */
export class AwayError extends Error {
  override readonly name = "AwayError";
  /** Whether the database may have executed the statement. */
  readonly asked: boolean;

  constructor(message: string, { asked, cause }: { readonly asked: boolean; readonly cause?: unknown }) {
    super(message, { cause });
    this.asked = asked;
  }
}

export interface ConnectionOptions {
  readonly address: PostgresAddress;
  /** Purpose of the connection, which PostgreSQL shows as part of the application name. */
  readonly use?: string;
  /** Timeout of a statement, here and in the database. After it, the connection is closed. */
  readonly statementMs?: number;
  /** Returns the statements that start each new connection. */
  readonly first?: () => readonly string[];
  /** Called with the channel of a notification; `null` if notifications may have been missed. */
  readonly onNotice?: (channel: string | null) => void;
}

type Row = Record<string, unknown>;

/** SQLSTATE codes of the server's condition: connection, resources, shutdown, disk, cancellation, locks, primary. */
const AWAY = /^(?:08|53|57P|57014|55P03|58|25006|40001|40P01|XX)/;
/** Codes after which the statement had no effect, if the connection stays open. */
const REFUSED = /^(?:53|57014|55P03|58|25006|40001|40P01)/;

/** Acknowledged commits must be synced to the database's disk. Settings that also wait for standbys stay unchanged. */
const SYNCED_SQL = `select set_config('synchronous_commit', 'on', false)
  where current_setting('synchronous_commit', true) = 'off'`;

export class PostgresConnection implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  #client: Promise<Client> | null = null;
  #triedAt = -Infinity;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Throws an `AwayError`, or the error of the statement. */
  async query({ name, text }: Statement, ...values: unknown[]): Promise<readonly Row[]> {
    const client = await this.#connected();
    try {
      return (await client.query<Row>({ name, text, values })).rows;
    } catch (error) {
      throw this.#explained(error, client);
    }
  }

  /** Runs unprepared statements in one transaction. */
  async transaction<Result>(
    run: (ask: (text: string, ...values: unknown[]) => Promise<readonly Row[]>) => Promise<Result>,
  ): Promise<Result> {
    const client = await this.#connected();
    try {
      await client.query("begin");
      const result = await run(async (text, ...values) => (await client.query<Row>(text, values)).rows);
      await client.query("commit");
      return result;
    } catch (error) {
      await client.query("rollback").catch(() => this.#drop(client));
      throw this.#explained(error, client);
    }
  }

  /** Connects if there is no connection. Throws an `AwayError`, or the error of the database. */
  async open(): Promise<void> {
    await this.#connected();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const client = await this.#client?.catch(() => null);
    this.#client = null;
    if (client) await end(client);
  }

  async #connected(): Promise<Client> {
    if (this.#closed) throw new AwayError("The server is stopping", { asked: false });
    try {
      return await (this.#client ??= this.#connect());
    } catch (error) {
      throw this.#explained(error, null);
    }
  }

  async #connect(): Promise<Client> {
    const pauseMs = this.#triedAt + clusterLimits.reconnectMs - performance.now();
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    this.#triedAt = performance.now();
    const { address, use, statementMs = clusterLimits.statementMs, first, onNotice } = this.#options;
    const { host, port, user, password, database, tls } = address;
    const client = new pg.Client({
      host,
      port,
      user,
      // The driver would replace an empty string by variables and files of the machine.
      password: () => password,
      database,
      ssl: tls === null
        ? false
        : tls.rootFile === null
        ? true
        : { ca: await Deno.readTextFile(tls.rootFile) },
      pipeline: true,
      application_name: use === undefined ? "syncline" : `syncline ${use}`,
      keepAlive: true,
      query_timeout: statementMs,
      statement_timeout: statementMs,
      idle_in_transaction_session_timeout: clusterLimits.statementMs,
      connectionTimeoutMillis: clusterLimits.connectMs,
    });
    // Without a listener a lost connection would end the process.
    client.on("error", () => this.#drop(client));
    client.on("end", () => this.#drop(client));
    if (onNotice !== undefined) client.on("notification", ({ channel }) => onNotice(channel));
    try {
      await client.connect();
      await client.query(SYNCED_SQL);
      for (const text of first?.() ?? []) await client.query(text);
    } catch (error) {
      this.#client = null;
      void end(client);
      throw error;
    }
    onNotice?.(null);
    return client;
  }

  #drop(client: Client): void {
    const present = this.#client;
    if (present === null) return;
    void present.then((known) => {
      if (known === client && this.#client === present) this.#client = null;
    }, () => {});
    void end(client);
  }

  #explained(error: unknown, client: Client | null): unknown {
    if (error instanceof AwayError) return error;
    const code = codeOf(error);
    if (code !== null && !AWAY.test(code)) return error;
    if (client !== null) this.#drop(client);
    else this.#client = null;
    return new AwayError(error instanceof Error ? error.message : String(error), {
      asked: client !== null && !(code !== null && REFUSED.test(code) && severityOf(error) === "ERROR"),
      cause: error,
    });
  }
}

/** Closes a connection, by force if it does not answer. Never rejects. */
async function end(client: Client): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, clusterLimits.connectMs);
  await Promise.race([client.end().catch(() => {}), late.promise]);
  clearTimeout(timer);
  client.connection.stream.destroy();
}

/** Returns the SQLSTATE of an error; `null` if it is not an error of the database. */
export function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return null;
  return /^[0-9A-Z]{5}$/.test(error.code) && "severity" in error ? error.code : null;
}

/** Returns the severity, in the language of the database. */
function severityOf(error: unknown): unknown {
  return error instanceof Error && "severity" in error ? error.severity : null;
}
