/**
 * A connection to the cluster's database, made anew when it is lost. Statements go out one behind the other without waiting
 * for answers. What is lost with a connection is told to whoever asked: only they know whether it may be asked again.
 */
// @ts-types="./driver.d.ts"
import pg from "pg";
import type { Client } from "./driver.d.ts";
import { clusterLimits } from "./limits.ts";
import type { PostgresPlace } from "./place.ts";

export interface Statement {
  /** It is prepared under this name. */
  readonly name: string;
  readonly text: string;
}

/** The database cannot be asked now. */
export class AwayError extends Error {
  override readonly name = "AwayError";
  /** Whether the statement may have reached it: what became of it is not known then. */
  readonly asked: boolean;

  constructor(message: string, { asked, cause }: { readonly asked: boolean; readonly cause?: unknown }) {
    super(message, { cause });
    this.asked = asked;
  }
}

export interface ConnectionOptions {
  readonly place: PostgresPlace;
  /** What it is for, where that is one thing: the database shows it beside the name of the program. */
  readonly use?: string;
  /** A statement without an answer for so long has none: the connection is given up. The database gives it up as well. */
  readonly statementMs?: number;
  /** Statements that each new connection begins with. */
  readonly first?: () => readonly string[];
  /** Told of notifications, and with `null` when some may have been missed. */
  readonly onNotice?: (channel: string | null) => void;
}

type Row = Record<string, unknown>;

/**
 * SQLSTATE classes that say something of the server and not of the statement: connection, resources, shutdown, the disk, a
 * statement that was cancelled or waited too long, another primary.
 */
const AWAY = /^(?:08|53|57P|57014|55P03|58|25006|40001|40P01|XX)/;
/** Those of them after which nothing of the statement has happened, when the connection goes on. */
const REFUSED = /^(?:53|57014|55P03|58|25006|40001|40P01)/;

/**
 * What is committed here is acknowledged: where it would be confirmed before it is on the database's disk it is not. What
 * waits for standbys as well stays as it is set.
 */
const SYNCED_SQL = `select set_config('synchronous_commit', 'on', false)
  where current_setting('synchronous_commit', true) = 'off'`;

export class Connection implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  #client: Promise<Client> | null = null;
  #triedAt = -Infinity;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Throws an `AwayError`, or what the database says of the statement. */
  async query({ name, text }: Statement, ...values: unknown[]): Promise<readonly Row[]> {
    const client = await this.#connected();
    try {
      return (await client.query<Row>({ name, text, values })).rows;
    } catch (error) {
      throw this.#explained(error, client);
    }
  }

  /** Several statements in one transaction, which are no prepared ones. */
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

  /** Connects if there is no connection. Throws an `AwayError`, or what the database says. */
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
    const { place, use, statementMs = clusterLimits.statementMs, first, onNotice } = this.#options;
    const { host, port, user, password, database, tls } = place;
    const client = new pg.Client({
      host,
      port,
      user,
      // An empty one would be looked for in variables and files of the machine.
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

/** One that does not answer any more is cut off. Never rejects. */
async function end(client: Client): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, clusterLimits.connectMs);
  await Promise.race([client.end().catch(() => {}), late.promise]);
  clearTimeout(timer);
  client.connection.stream.destroy();
}

/** The SQLSTATE of what the database said; `null` when it was not the database that spoke. */
export function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return null;
  return /^[0-9A-Z]{5}$/.test(error.code) && "severity" in error ? error.code : null;
}

/** As the database calls it, in its own language. */
function severityOf(error: unknown): unknown {
  return error instanceof Error && "severity" in error ? error.severity : null;
}
