/** Functions by number: a run names its function with one, and counts are kept by it. */
import { logLimits } from "../../limits.ts";
import { admitsFunction, isServicePath, type RunFilter } from "../run_filter.ts";
import { runKinds } from "../run_record.ts";
import type { LogDatabase } from "./log_database.ts";

/** The number of functions that have none of their own, because there were too many. */
export const OTHER_FUNCTIONS = 0;

/** Functions of one kind, of the service or of the app, are counted together too: under a number below those of functions. */
export function classNumber({ path, kind }: NamedFunction): number {
  return -1 - kind * 2 - (isServicePath(path) ? 1 : 0);
}

/** The numbers of the classes that a filter lets through; `null` when it asks for single functions. */
export function classesOf({ functions, kinds, system }: RunFilter): readonly number[] | null {
  if (functions !== undefined) return null;
  const classes: number[] = [];
  for (const kind of runKinds.keys()) {
    for (const ofService of [false, true]) {
      const wanted = (kinds === undefined || kinds.includes(kind)) &&
        (system === undefined || system === ofService);
      if (wanted) classes.push(-1 - kind * 2 - (ofService ? 1 : 0));
    }
  }
  return classes;
}

interface NamedFunction {
  readonly path: string;
  readonly kind: number;
}

export class FunctionNames {
  readonly #database: LogDatabase;
  readonly #numbers = new Map<string, number>();
  readonly #names = new Map<number, NamedFunction>();

  constructor(database: LogDatabase) {
    this.#database = database;
  }

  /** Reads the names that the log has: to be called first, and when others may have added some. */
  reload(): void {
    this.#numbers.clear();
    this.#names.clear();
    for (const [id, path, kind] of this.#database.all("SELECT id, path, kind FROM functions")) {
      this.#note(id as number, { path: path as string, kind: kind as number });
    }
  }

  /** The number of a function, given to a new one. In a transaction. */
  numberOf({ path, kind }: NamedFunction): number {
    const known = this.#numbers.get(keyOf({ path, kind }));
    if (known !== undefined) return known;
    if (this.#names.size >= logLimits.functionsMax) return OTHER_FUNCTIONS;
    const id = this.#names.size + 1;
    this.#database.run("INSERT INTO functions (id, path, kind) VALUES (?, ?, ?)", id, path, kind);
    this.#note(id, { path, kind });
    return id;
  }

  named(fn: number): NamedFunction | undefined {
    return this.#names.get(fn);
  }

  /**
   * The numbers of the functions that a filter lets through; `null` when it lets all through. Those without a number of
   * their own have to be looked at one by one.
   */
  admitted(filter: RunFilter): ReadonlySet<number> | null {
    if (filter.functions === undefined && filter.kinds === undefined && filter.system === undefined) {
      return null;
    }
    const admitted = new Set<number>();
    for (const [id, name] of this.#names) if (admitsFunction(filter, name)) admitted.add(id);
    if (this.#names.size >= logLimits.functionsMax) admitted.add(OTHER_FUNCTIONS);
    return admitted;
  }

  #note(id: number, name: NamedFunction): void {
    this.#numbers.set(keyOf(name), id);
    this.#names.set(id, name);
  }
}

function keyOf({ path, kind }: NamedFunction): string {
  return `${kind}${path}`;
}
