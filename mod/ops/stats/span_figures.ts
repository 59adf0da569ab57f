/** Counts of one time span by function. Spans can be added up. */
import type { RunKind } from "../../functions/host/mod.ts";
import { statsLimits } from "../limits.ts";
import { Histogram, LATENCY_BOUNDS, type PackedHistogram } from "./counters.ts";

/** Name under which functions beyond the limit are counted; no function has it. */
export const OTHER_FUNCTIONS = "(others)";

const COUNTS = ["calls", "errors", "hits", "reads", "indexReads", "writes", "indexWrites"] as const;
type Count = (typeof COUNTS)[number];

/** Counts of one function. Errors are runs that failed for other reasons than the caller's. */
export class FunctionFigures {
  calls = 0;
  errors = 0;
  /** Cached results. */
  hits = 0;
  reads = 0;
  indexReads = 0;
  writes = 0;
  indexWrites = 0;
  readonly latencies = new Histogram(LATENCY_BOUNDS);

  addAll(other: FunctionFigures): void {
    for (const name of COUNTS) this[name] += other[name];
    this.latencies.addAll(other.latencies);
  }
}

/** Serialized form. */
export interface PackedSpan {
  readonly functions: readonly (readonly [
    kind: RunKind,
    path: string,
    counts: readonly number[],
    latencies: PackedHistogram,
  ])[];
  readonly commits: PackedHistogram;
}

export class SpanFigures {
  readonly #functions = new Map<RunKind, Map<string, FunctionFigures>>();
  #size = 0;
  /** From the acceptance of mutations to their commit. */
  readonly commits = new Histogram(LATENCY_BOUNDS);

  /** Returns the counts of a function, or the shared ones beyond the limit. */
  of(kind: RunKind, path: string): FunctionFigures {
    let functions = this.#functions.get(kind);
    if (functions === undefined) this.#functions.set(kind, functions = new Map());
    const known = functions.get(path);
    if (known !== undefined) return known;
    if (this.#size >= statsLimits.functionsMax && path !== OTHER_FUNCTIONS) {
      return this.of(kind, OTHER_FUNCTIONS);
    }
    const made = new FunctionFigures();
    functions.set(path, made);
    this.#size++;
    return made;
  }

  addAll(other: SpanFigures): void {
    for (const { kind, path, figures } of other) this.of(kind, path).addAll(figures);
    this.commits.addAll(other.commits);
  }

  *[Symbol.iterator](): Generator<
    { readonly kind: RunKind; readonly path: string; readonly figures: FunctionFigures }
  > {
    for (const [kind, functions] of this.#functions) {
      for (const [path, figures] of functions) yield { kind, path, figures };
    }
  }

  pack(): PackedSpan {
    return {
      functions: [...this].map(({ kind, path, figures }) =>
        [kind, path, COUNTS.map((name) => figures[name]), figures.latencies.pack()] as const
      ),
      commits: this.commits.pack(),
    };
  }

  static unpack({ functions, commits }: PackedSpan): SpanFigures {
    const made = new SpanFigures();
    for (const [kind, path, counts, latencies] of functions) {
      const figures = made.of(kind, path);
      COUNTS.forEach((name: Count, at) => figures[name] += counts[at] ?? 0);
      figures.latencies.unpack(latencies);
    }
    made.commits.unpack(commits);
    return made;
  }
}
