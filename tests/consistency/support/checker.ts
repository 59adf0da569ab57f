/**
 * Finds anomalies in a history of appends and reads. The final lists show the order of all appends, which determines the
 * dependencies between operations. Mutations must be strict-serializable. Queries must be serializable and include all
 * writes that their machine acknowledged before they started. Views must be the state at their ts.
 */
import { type Edge, Graph } from "./graph.ts";
import { type Anomaly, describe, type History, type Lists, type Mutation, type Query } from "./history.ts";

const ANOMALIES_MAX = 20;

/** A read without the values that the reader itself appended before. */
interface ExternalRead {
  readonly key: string;
  readonly values: readonly number[];
}

interface Append {
  readonly mutation: Mutation;
  readonly key: string;
  /** Whether the mutation appended to the same list later. */
  readonly isIntermediate: boolean;
}

/** Between these ts a mutation was committed: it is missing at `after`, and present at `upTo`. */
interface Bounds {
  after: number;
  afterIn: string;
  upTo: number;
  upToIn: string;
}

export function check(history: History): Anomaly[] {
  const checker = new Checker(history);
  checker.checkLists();
  // A wrong list causes many cycles, which add no information.
  if (checker.anomalies.length === 0) checker.checkCycles();
  if (checker.anomalies.length === 0) checker.checkTimestamps();
  return checker.anomalies;
}

class Checker {
  readonly anomalies: Anomaly[] = [];
  readonly #history: History;
  readonly #appends = new Map<number, Append>();
  readonly #reads = new Map<Mutation | Query, readonly ExternalRead[]>();

  constructor(history: History) {
    this.#history = history;
    for (const mutation of history.mutations) {
      const last = new Map<string, number>();
      for (const step of mutation.steps) if (step.type === "append") last.set(step.key, step.value);
      for (const step of mutation.steps) {
        if (step.type !== "append") continue;
        const isIntermediate = last.get(step.key) !== step.value;
        this.#appends.set(step.value, { mutation, key: step.key, isIntermediate });
      }
    }
  }

  /** Checks the final lists, and that each read is a beginning of one. */
  checkLists(): void {
    const { mutations, queries, views, final } = this.#history;
    const present = new Set<number>();
    for (const [key, values] of Object.entries(final)) {
      for (const value of values) {
        const append = this.#appends.get(value);
        if (append?.key !== key) this.#report("unknown value", `${value} in ${key}=[${values}]`);
        else if (append.mutation.outcome === "failed") {
          this.#report("aborted append", `${value} in ${key}=[${values}]\n  ${describe(append.mutation)}`);
        }
        if (present.has(value)) this.#report("duplicate append", `${value} in ${key}=[${values}]`);
        present.add(value);
      }
    }
    for (const mutation of mutations) {
      const values = mutation.steps.flatMap((step) => step.type === "append" ? [step.value] : []);
      const missing = values.filter((value) => !present.has(value));
      if (missing.length === 0 || mutation.outcome === "failed") continue;
      const name = mutation.outcome === "committed" ? "lost append" : "torn mutation";
      if (mutation.outcome === "committed" || missing.length < values.length) {
        this.#report(name, `${missing} not in the final lists\n  ${describe(mutation)}`);
      }
    }
    for (const mutation of mutations) {
      if (mutation.outcome === "committed") this.#reads.set(mutation, this.#externalReads(mutation));
    }
    for (const query of queries) this.#reads.set(query, readsOf(query.lists));
    for (const [operation, reads] of this.#reads) {
      for (const read of reads) this.#checkRead(read, () => describe(operation));
    }
    for (const { socket, ts, lists } of views) {
      for (const read of readsOf(lists)) this.#checkRead(read, () => `${socket} at ts ${ts}`);
    }
  }

  /** The reads of a mutation. Reports those that do not end with the values it appended before. */
  #externalReads(mutation: Mutation): ExternalRead[] {
    const own = new Map<string, number[]>();
    const reads: ExternalRead[] = [];
    for (const step of mutation.steps) {
      const before = own.get(step.key) ?? [];
      if (step.type === "append") own.set(step.key, [...before, step.value]);
      else if (step.values !== null) {
        const count = step.values.length - before.length;
        if (count < 0 || before.some((value, at) => step.values?.[count + at] !== value)) {
          this.#report("own append missing", describe(mutation));
        }
        reads.push({ key: step.key, values: step.values.slice(0, Math.max(0, count)) });
      }
    }
    return reads;
  }

  #checkRead({ key, values }: ExternalRead, describeReader: () => string): void {
    const order = this.#history.final[key] ?? [];
    const wrong = values.findIndex((value, at) => order[at] !== value);
    if (wrong !== -1) {
      const text = `${key}=[${values}] is not a beginning of [${order}]\n  ${describeReader()}`;
      return this.#report(
        values.indexOf(values[wrong] ?? 0) < wrong ? "duplicate append" : "lost append",
        text,
      );
    }
    const last = values.at(-1);
    if (last === undefined || this.#appends.get(last)?.isIntermediate !== true) return;
    this.#report("intermediate read", `${key}=[${values}]\n  ${describeReader()}`);
  }

  /** Searches cycles of dependencies. */
  checkCycles(): void {
    const { mutations, queries, final } = this.#history;
    const isPresent = ({ steps }: Mutation) =>
      steps.some((step) => step.type === "append" && final[step.key]?.includes(step.value));
    const operations = [
      ...mutations.filter((mutation) => mutation.outcome === "committed" || isPresent(mutation)),
      ...queries,
    ];
    const graph = new Graph(operations.length);
    const numbers = new Map(operations.map((operation, number) => [operation, number]));
    const writer = (value: number | undefined) => {
      const append = value === undefined ? undefined : this.#appends.get(value);
      return append === undefined ? -1 : numbers.get(append.mutation) ?? -1;
    };
    for (const [key, values] of Object.entries(final)) {
      for (let at = 1; at < values.length; at++) {
        graph.add({ from: writer(values[at - 1]), to: writer(values[at]), kind: "ww", key });
      }
    }
    for (const [operation, reads] of this.#reads) {
      const reader = numbers.get(operation) ?? -1;
      for (const { key, values } of reads) {
        const last = writer(values.at(-1));
        if (last !== -1) graph.add({ from: last, to: reader, kind: "wr", key });
        const next = writer(final[key]?.[values.length]);
        if (next !== -1) graph.add({ from: reader, to: next, kind: "rw", key });
      }
    }
    addTime(graph, operations);
    for (const cycle of graph.cycles()) {
      const lines = cycle.map(({ from, to, kind, key }) => {
        const operation = operations[from];
        const text = operation === undefined ? "" : describe(operation);
        return `  T${from}: ${text}\n    ${kind}${key === undefined ? "" : ` ${key}`} -> T${to}`;
      });
      this.#report(nameOf(cycle), `${cycle.length} operations\n${lines.join("\n")}`);
    }
  }

  /** Checks that reads at a ts contain exactly the mutations up to this ts. */
  checkTimestamps(): void {
    const { mutations, views } = this.#history;
    const bounds = new Map<Mutation, Bounds>();
    for (const mutation of mutations) {
      if (mutation.outcome === "failed") continue;
      const { id, ts } = mutation;
      const response = `the response to ${id}`;
      bounds.set(mutation, {
        after: ts === null ? -1 : ts - 1,
        afterIn: response,
        upTo: ts ?? Infinity,
        upToIn: response,
      });
    }
    for (const mutation of mutations) {
      const reads = this.#reads.get(mutation);
      if (reads === undefined || mutation.ts === null) continue;
      this.#narrow(bounds, { reads, ts: mutation.ts, reader: mutation, name: mutation.id });
    }
    const before = new Map<string, number>();
    for (const { socket, ts, atLeastTs, lists } of views) {
      const previous = before.get(socket) ?? 0;
      if (ts < previous) this.#report("view goes back", `${socket} from ts ${previous} to ts ${ts}`);
      if (ts < atLeastTs) {
        this.#report("stale view", `${socket} at ts ${ts}; its client had seen ts ${atLeastTs}`);
      }
      before.set(socket, ts);
      this.#narrow(bounds, { reads: readsOf(lists), ts, reader: null, name: `${socket} at ts ${ts}` });
    }
    for (const [mutation, { after, afterIn, upTo, upToIn }] of bounds) {
      if (after < upTo) continue;
      const name = afterIn === upToIn ? "torn view" : upTo === mutation.ts ? "stale read" : "view disagrees";
      const text = `missing at ts ${after} (${afterIn}), present at ts ${upTo} (${upToIn})`;
      this.#report(name, `${text}\n  ${describe(mutation)}`);
    }
  }

  #narrow(
    bounds: ReadonlyMap<Mutation, Bounds>,
    { reads, ts, reader, name }: {
      readonly reads: readonly ExternalRead[];
      readonly ts: number;
      readonly reader: Mutation | null;
      readonly name: string;
    },
  ): void {
    for (const { key, values } of reads) {
      const order = this.#history.final[key] ?? [];
      for (let at = 0; at < order.length; at++) {
        const mutation = this.#appends.get(order[at] ?? 0)?.mutation;
        const bound = mutation === undefined || mutation === reader ? undefined : bounds.get(mutation);
        if (bound === undefined) continue;
        if (at < values.length) {
          if (ts < bound.upTo) Object.assign(bound, { upTo: ts, upToIn: name });
        } else if (ts > bound.after) Object.assign(bound, { after: ts, afterIn: name });
      }
    }
  }

  #report(name: string, text: string): void {
    if (this.anomalies.length < ANOMALIES_MAX) this.anomalies.push({ name, text });
  }
}

function readsOf(lists: Lists): ExternalRead[] {
  return Object.entries(lists).map(([key, values]) => ({ key, values }));
}

/**
 * Adds the order in time. Each answer to a mutation is a point after the point before it, so that edges grow with the number
 * of operations. A query follows the answers of its machine only.
 */
function addTime(graph: Graph, operations: readonly (Mutation | Query)[]): void {
  const last = new Map<string, number>();
  const answer = (line: string, from: number) => {
    const point = graph.addPoint();
    const before = last.get(line);
    if (before !== undefined) graph.add({ from: before, to: point, kind: "time" });
    graph.add({ from, to: point, kind: "time" });
    last.set(line, point);
  };
  const events = operations.flatMap((operation, number) => [
    { at: operation.startedAt, isEnd: false, operation, number },
    ..."steps" in operation && operation.outcome === "committed"
      ? [{ at: operation.endedAt, isEnd: true, operation, number }]
      : [],
  ]).sort((a, b) => a.at - b.at || Number(a.isEnd) - Number(b.isEnd));
  for (const { isEnd, operation, number } of events) {
    const machine = `machine ${operation.machine}`;
    if (isEnd) {
      answer("all", number);
      answer(machine, number);
      continue;
    }
    const point = last.get("steps" in operation ? "all" : machine);
    if (point !== undefined) graph.add({ from: point, to: number, kind: "time" });
  }
}

/** The name of a cycle in the literature. */
function nameOf(cycle: readonly Edge[]): string {
  const count = (kind: Edge["kind"]) => cycle.filter((edge) => edge.kind === kind).length;
  const name = count("rw") > 1 ? "G2" : count("rw") === 1 ? "G-single" : count("wr") > 0 ? "G1c" : "G0";
  return count("time") > 0 ? `${name}-realtime` : name;
}
