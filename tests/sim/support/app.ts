/**
 * The functions of the simulated app, written once and run twice: on the real engine, and on the naive model that determines
 * the correct results.
 */
import { UserError } from "../../../mod/errors.ts";

export interface Row {
  readonly k: string;
  readonly g: string;
  readonly n: number;
  readonly owner: string | null;
}

/** Rows in the order of `g`, then `k`. */
export interface Rows {
  get(k: string): Row | null;
  group(g: string): Row[];
  all(): Row[];
}

export interface WritableRows extends Rows {
  put(row: Row): void;
  remove(k: string): void;
}

export interface Caller {
  principal(): string | null;
  session(): string | null;
}

export type Args = Record<string, unknown>;
export type QueryFunction = (rows: Rows, caller: Caller, args: Args) => unknown;
export type MutationFunction = (rows: WritableRows, caller: Caller, args: Args) => unknown;

export const keys = Array.from({ length: 12 }, (_, i) => `k${i}`);
export const groups = ["g0", "g1", "g2"] as const;

/** Rows as clients receive them: documents with an `_id`, long enough for diffs. */
function shown(rows: readonly Row[]): unknown[] {
  return rows.map(({ k, n, owner }) => ({ _id: k, n, owner, text: `the row with the key ${k}` }));
}

export const queries: Record<string, QueryFunction> = {
  "rows:get": (rows, _caller, { k }) => rows.get(String(k)),
  "rows:group": (rows, _caller, { g }) => shown(rows.group(String(g))),
  "rows:all": (rows) => shown(rows.all()),
  "rows:sum": (rows) => rows.all().reduce((sum, { n }) => sum + n, 0),
  /** Fails for some rows, until they change. */
  "rows:odd": (rows, _caller, { k }) => {
    const row = rows.get(String(k));
    if (row === null) throw new UserError("missing", "No such row", { k });
    if (row.n % 3 === 0) throw new Error("a bug of the app");
    return row.n;
  },
  mine: (rows, caller) => {
    const principal = caller.principal();
    return { principal, rows: shown(rows.all().filter(({ owner }) => owner === principal)) };
  },
  "my/session": (rows, caller) => ({ session: caller.session(), first: rows.get("k0") }),
  /** Personal depending on a row, so that its scope changes. */
  "rows:guarded": (rows, caller, { k }) => {
    const row = rows.get(String(k));
    const guard = row === null ? 0 : row.n % 3;
    if (guard === 0) return { open: row };
    if (guard === 1) return { for: caller.principal(), row };
    return { for: caller.principal(), session: caller.session(), row };
  },
};

export const mutations: Record<string, MutationFunction> = {
  put: (rows, caller, { k, g, n }) => {
    rows.put({ k: String(k), g: String(g), n: Number(n), owner: caller.principal() });
    return k;
  },
  /** Not idempotent, so that a second run is detected. */
  add: (rows, _caller, { k }) => {
    const row = rows.get(String(k)) ?? { k: String(k), g: groups[0], n: 0, owner: null };
    rows.put({ ...row, n: row.n + 1 });
    return row.n + 1;
  },
  move: (rows, _caller, { k, g }) => {
    const row = rows.get(String(k));
    if (row === null) throw new UserError("missing", "No such row", { k });
    rows.put({ ...row, g: String(g) });
  },
  transfer: (rows, _caller, { from, to }) => {
    const [a, b] = [rows.get(String(from)), rows.get(String(to))];
    if (a === null || b === null || a.k === b.k) throw new UserError("missing", "No such row");
    rows.put({ ...a, n: a.n - 1 });
    rows.put({ ...b, n: b.n + 1 });
    return [a.n - 1, b.n + 1];
  },
  remove: (rows, _caller, { k }) => {
    if (rows.get(String(k)) === null) throw new UserError("missing", "No such row", { k });
    rows.remove(String(k));
  },
  claim: (rows, caller, { k }) => {
    const row = rows.get(String(k));
    if (row !== null) rows.put({ ...row, owner: caller.principal() });
    return caller.principal();
  },
  /** Writes, then fails: nothing of it may be visible. */
  halfway: (rows, _caller, { k }) => {
    rows.put({ k: String(k), g: groups[1], n: 1_000_000, owner: "nobody" });
    throw new Error("a bug of the app");
  },
  nothing: (rows) => rows.all().length,
};
