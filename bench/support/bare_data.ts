/** Control of the data rows: the same documents in `node:sqlite`, with minimal code that returns the same results. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";

type Statement = Record<"get" | "all" | "run", (...values: SQLInputValue[]) => unknown[]>;

export interface Account {
  readonly _id: string;
  readonly number: number;
}

export class BareData implements Disposable {
  readonly #database: DatabaseSync;
  readonly #point: Statement;
  readonly #range: Statement;
  readonly #page: Statement;
  readonly #match: Statement;
  readonly #note: Statement;
  readonly #vectors: Statement;

  constructor(path: string) {
    this.#database = new DatabaseSync(path);
    this.#database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384;
      CREATE TABLE accounts (rid INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, doc TEXT NOT NULL);
      CREATE TABLE by_number (number REAL, rid INTEGER NOT NULL, PRIMARY KEY (number, rid)) WITHOUT ROWID;
      CREATE TABLE notes (rid INTEGER PRIMARY KEY, doc TEXT NOT NULL);
      CREATE VIRTUAL TABLE words USING fts5(body, content = '');
      CREATE TABLE vectors (rid INTEGER PRIMARY KEY, vector BLOB NOT NULL)`);
    const joined = "FROM by_number n CROSS JOIN accounts d ON d.rid = n.rid WHERE";
    this.#point = this.#arrays("SELECT doc FROM accounts WHERE id = ?");
    this.#range = this.#arrays(`SELECT d.doc ${joined} n.number >= ? AND n.number < ? ORDER BY n.number`);
    this.#page = this.#arrays(`SELECT d.doc ${joined} n.number > ? ORDER BY n.number LIMIT ?`);
    this.#match = this.#arrays("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10");
    this.#note = this.#arrays("SELECT doc FROM notes WHERE rid = ?");
    this.#vectors = this.#arrays("SELECT vector FROM vectors");
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  addAccounts(accounts: readonly Account[]): void {
    const insert = this.#arrays("INSERT INTO accounts (id, doc) VALUES (?, ?) RETURNING rid");
    const index = this.#arrays("INSERT INTO by_number (number, rid) VALUES (?, ?)");
    this.#inTransaction(() => {
      for (const account of accounts) {
        const [rid] = insert.get(account._id, JSON.stringify(account)) as [number];
        index.run(account.number, rid);
      }
    });
  }

  addNotes(bodies: readonly string[]): void {
    const insert = this.#arrays("INSERT INTO notes (doc) VALUES (?) RETURNING rid");
    const index = this.#arrays("INSERT INTO words (rowid, body) VALUES (?, ?)");
    this.#inTransaction(() => {
      for (const body of bodies) index.run((insert.get(JSON.stringify({ body })) as [number])[0], body);
    });
  }

  addVectors(vectors: readonly (readonly number[])[]): void {
    const insert = this.#arrays("INSERT INTO vectors (vector) VALUES (?)");
    this.#inTransaction(() => {
      for (const vector of vectors) insert.run(new Uint8Array(new Float32Array(vector).buffer));
    });
  }

  point(id: string): Account {
    return JSON.parse((this.#point.get(id) as [string])[0]) as Account;
  }

  range(from: number, to: number): Account[] {
    return (this.#range.all(from, to) as [string][]).map(([text]) => JSON.parse(text) as Account);
  }

  page(after: number, count: number): Account[] {
    return (this.#page.all(after, count) as [string][]).map(([text]) => JSON.parse(text) as Account);
  }

  search(words: readonly [string, string]): unknown[] {
    const found = this.#match.all(`"${words[0]}" OR "${words[1]}"*`) as [number][];
    return found.map(([rid]) => JSON.parse((this.#note.get(rid) as [string])[0]));
  }

  /** Returns the cosines of the ten nearest vectors, best first. */
  nearest(to: readonly number[]): number[] {
    const best: number[] = [];
    const length = Math.hypot(...to);
    for (const [bytes] of this.#vectors.all() as [Uint8Array][]) {
      const vector = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
      let product = 0;
      let square = 0;
      for (let index = 0; index < vector.length; index++) {
        const value = vector[index] ?? 0;
        product += value * (to[index] ?? 0);
        square += value * value;
      }
      const cosine = product / (length * Math.sqrt(square));
      if (best.length === 10 && cosine <= (best[9] ?? 0)) continue;
      best.push(cosine);
      best.sort((a, b) => b - a);
      best.length = Math.min(best.length, 10);
    }
    return best;
  }

  #inTransaction(write: () => void): void {
    this.#database.exec("BEGIN");
    write();
    this.#database.exec("COMMIT");
  }

  #arrays(sql: string): Statement {
    const statement = this.#database.prepare(sql);
    (statement as unknown as { setReturnArrays(on: boolean): void }).setReturnArrays(true);
    return statement as unknown as Statement;
  }
}
