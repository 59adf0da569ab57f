/** What ran in one span of time, by function. Spans are added up to longer ones. */
import type { RunKind } from "../../functions/host/mod.ts";
import { statsLimits } from "../limits.ts";
import { Latencies, type PackedLatencies } from "./latencies.ts";

/** Functions beyond the bound are counted under this name, which no function has. */
export const OTHER_FUNCTIONS = "(others)";

const COUNTS = ["calls", "errors", "hits", "reads", "indexReads", "writes", "indexWrites"] as const;
type Count = (typeof COUNTS)[number];

/** Counts of one function. Errors are runs that failed through no fault of the caller. */
export class FunctionFigures {
  calls = 0;
  errors = 0;
  /** Calls and subscriptions that were answered without a run. */
  hits = 0;
  reads = 0;
  indexReads = 0;
  writes = 0;
  indexWrites = 0;
  latencies = new Latencies();

  addAll(other: FunctionFigures): void {
    for (const name of COUNTS) this[name] += other[name];
    this.latencies.addAll(other.latencies);
  }
}

/** As it is saved. */
export interface PackedSpan {
  readonly functions: readonly (readonly [
    kind: RunKind,
    path: string,
    counts: readonly number[],
    latencies: PackedLatencies,
  ])[];
  readonly commits: PackedLatencies;
}

export class SpanFigures {
  readonly #functions = new Map<RunKind, Map<string, FunctionFigures>>();
  #size = 0;
  /** From the acceptance of mutations to their commit. */
  readonly commits = new Latencies();

  /** The counts of a function, those of all others when there are too many. */
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
      figures.latencies.addAll(Latencies.unpack(latencies));
    }
    made.commits.addAll(Latencies.unpack(commits));
    return made;
  }
}
