/**
 * The cluster's database in the simulation: executes statements in memory, by the simulation's clock. The simulation decides
 * when a connection's statements are executed and answered, if at all.
 */
import type { JournalRow } from "../../../mod/engine/mod.ts";
import { AwayError, type Statement } from "../../../mod/cluster/postgres/connection.ts";
import type { Clock } from "../../../mod/kit/clock.ts";

type Row = Record<string, unknown>;

/** A row that exists already, in the format of the driver. */
class UniqueViolation extends Error {
  readonly code = "23505";
  readonly severity = "ERROR";
}

export interface SharedLogOptions {
  readonly clock: Clock;
  /** Number of the row before the first one. */
  readonly first: Pick<JournalRow, "seq" | "ts" | "sum">;
  /** Called with each new row. */
  readonly onAdded: (row: JournalRow) => void;
}

const decoder = new TextDecoder();

export class SharedLog {
  readonly #options: SharedLogOptions;
  readonly #rows: (JournalRow & { readonly bytes: Uint8Array })[] = [];
  /** Rows that were refused because the lease of their leader had expired. */
  fenced = 0;
  /** Jumps of its clock while a server had the lease. */
  jumps = 0;
  /** Offset of its clock from that of the simulation. */
  #ahead = 0;
  #lease = { epoch: 0, holder: "", address: "", until: -Infinity };

  constructor(options: SharedLogOptions) {
    this.#options = options;
  }

  get end(): Pick<JournalRow, "seq" | "ts" | "sum"> {
    return this.#rows.at(-1) ?? this.#options.first;
  }

  /** Executes a statement. Throws like the database. */
  execute({ name }: Statement, values: readonly unknown[]): Row[] {
    switch (name) {
      case "syncline_append":
        return this.#append(values);
      case "syncline_notify":
        // The simulation decides when rows are announced.
        return [];
      case "syncline_sum_of":
        return [this.#at(Number(values[0]))].flatMap((row) => row === undefined ? [] : [{ sum: row.sum }]);
      case "syncline_leads": {
        const [epoch, seq] = values as [number, number];
        return this.#lease.epoch === epoch && this.end.seq <= seq ? [{ leads: 1 }] : [];
      }
      case "syncline_end":
        return this.#rows.length === 0 ? [] : [{ ...this.end }];
      case "syncline_read":
        return this.#read(values as [number, number]);
      case "syncline_take":
        return this.#take(values as [string, string, number]);
      case "syncline_renew":
        return this.#renew(values as [number, string, number]);
      case "syncline_release":
        return this.#release(values as [number, string]);
      case "syncline_lease": {
        const { epoch, holder, address, until } = this.#lease;
        const held = until > -Infinity;
        return [{ epoch, holder, address, held, left_ms: held ? until - this.#now : -1 }];
      }
      default:
        throw new Error(`The simulation does not know ${name}`);
    }
  }

  /** Sets the offset of the database's clock from that of the simulation. */
  setClock(ahead: number): void {
    if (ahead !== this.#ahead && this.#lease.until > -Infinity) this.jumps++;
    this.#ahead = ahead;
  }

  get #now(): number {
    return this.#options.clock.now() + this.#ahead;
  }

  #at(seq: number) {
    return this.#rows[seq - this.#options.first.seq - 1];
  }

  #append(values: readonly unknown[]): Row[] {
    const [epoch, seq, tsBefore, ts, at, sum, body, firstSeq] = values as [
      ...[epoch: number, seq: number, tsBefore: number, ts: number, at: number],
      ...[sum: string, body: Uint8Array, firstSeq: number],
    ];
    if (this.#lease.epoch !== epoch) {
      this.fenced++;
      return [];
    }
    if (firstSeq !== seq - 1 && this.#at(seq - 1) === undefined) return [];
    if (this.#at(seq) !== undefined) throw new UniqueViolation(`Row ${seq} is there`);
    const bytes = body.slice();
    const row = { seq, tsBefore, ts, at, sum, body: decoder.decode(bytes) };
    this.#rows.push({ ...row, bytes });
    this.#options.onAdded(row);
    return [{ seq }];
  }

  #read([after, count]: [number, number]): Row[] {
    const { seq: end_seq, ts: end_ts } = this.end;
    return this.#rows.filter(({ seq }) => seq >= after).slice(0, count).map((row) => ({
      seq: row.seq,
      ts_before: row.tsBefore,
      ts: row.ts,
      at: row.at,
      sum: row.sum,
      text: row.seq > after ? row.body : null,
      bytes: null,
      end_seq,
      end_ts,
    }));
  }

  #take([holder, address, leaseMs]: [string, string, number]): Row[] {
    const now = this.#now;
    if (this.#lease.until >= now) return [];
    this.#lease = { epoch: this.#lease.epoch + 1, holder, address, until: now + leaseMs };
    return [{ epoch: this.#lease.epoch }];
  }

  #renew([epoch, holder, leaseMs]: [number, string, number]): Row[] {
    if (this.#lease.epoch !== epoch || this.#lease.holder !== holder) return [];
    this.#lease.until = this.#now + leaseMs;
    return [{ epoch, others: 1 }];
  }

  #release([epoch, holder]: [number, string]): Row[] {
    if (this.#lease.epoch === epoch && this.#lease.holder === holder) this.#lease.until = -Infinity;
    return [];
  }
}

interface Asked {
  readonly statement: Statement;
  readonly values: readonly unknown[];
  readonly answer: PromiseWithResolvers<readonly Row[]>;
  /** Delivers the answer. Set when the database has executed the statement. */
  report: (() => void) | null;
}

/** A server's connection, which sends statements and answers in order. */
export class SimConnection {
  readonly #log: SharedLog;
  #asked: Asked[] = [];
  /** Whether the database is unreachable: nothing is sent then. */
  away = false;

  constructor(log: SharedLog) {
    this.#log = log;
  }

  query(statement: Statement, ...values: unknown[]): Promise<readonly Row[]> {
    if (this.away) return Promise.reject(new AwayError("It is away", { asked: false }));
    const asked = { statement, values, answer: Promise.withResolvers<readonly Row[]>(), report: null };
    this.#asked.push(asked);
    return asked.answer.promise;
  }

  get busy(): boolean {
    return this.#asked.length > 0;
  }

  /** The database executes the next statement. Its answer is delivered later. */
  execute(): void {
    const next = this.#asked.find(({ report }) => report === null);
    if (next === undefined) return;
    const { answer: { resolve, reject } } = next;
    try {
      const rows = this.#log.execute(next.statement, next.values);
      next.report = () => resolve(rows);
    } catch (error) {
      if (!(error instanceof UniqueViolation)) throw error;
      next.report = () => reject(error);
    }
  }

  /** Delivers the oldest answer. The database executes the statement first if it has not yet. */
  step(): void {
    if (this.#asked[0]?.report === null) this.execute();
    this.#asked.shift()?.report?.();
  }

  /**
   * It breaks. Completed statements are not reported. Others may still be completed, if they are in transit: `late` gets it.
   */
  cut(late: (run: () => void) => void): void {
    for (const { statement, values, answer, report } of this.#asked.splice(0)) {
      if (report === null) {
        late(() => {
          try {
            this.#log.execute(statement, values);
          } catch (error) {
            if (!(error instanceof UniqueViolation)) throw error;
          }
        });
      }
      answer.reject(new AwayError("The connection broke", { asked: true }));
    }
  }
}
