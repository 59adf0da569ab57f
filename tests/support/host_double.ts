/**
 * Shared by doubles of the isolates: listeners, conversion of failures to outcomes, and the parts of the caller that a run reads.
 * Those that store documents on the real engine are in `tests/sim`, those in a map in `tests/sync`; tests that need the
 * app's own functions use `mod/testing`.
 */
import type { CommitEntry } from "../../mod/engine/types.ts";
import { UserError } from "../../mod/errors.ts";
import type {
  FollowedGroup,
  FunctionCall,
  FunctionHost,
  FunctionInfo,
  MutationAnswer,
  MutationCall,
  QueryAnswer,
  QueryBatchRun,
  QueryReaders,
  SkipGroup,
} from "../../mod/functions/host_port.ts";
import type { AuthScope, Identity } from "../../mod/functions/identity.ts";
import { failed, type Outcome } from "../../mod/functions/outcome.ts";

/** Thrown by a function whose arguments are invalid. */
export class ArgsError extends Error {}

/** Paths of functions by their kind. */
export interface FunctionTable {
  readonly queries: Readonly<Record<string, unknown>>;
  readonly mutations: Readonly<Record<string, unknown>>;
  readonly actions?: Readonly<Record<string, unknown>>;
}

export abstract class HostDouble implements FunctionHost {
  readonly #functions: FunctionTable;
  readonly #commitListeners: {
    readonly report: (entries: readonly CommitEntry[]) => void;
    readonly passes: SkipGroup;
  }[] = [];
  readonly #reloadListeners: (() => void)[] = [];
  readonly #freeListeners: (() => void)[] = [];

  constructor(functions: FunctionTable) {
    this.#functions = functions;
  }

  abstract readonly ts: number;
  abstract readonly hasFreeReader: boolean;
  abstract mutate(call: MutationCall): Promise<MutationAnswer>;
  abstract act(call: FunctionCall): Promise<Outcome>;
  abstract startQueryBatch(
    queries: readonly FunctionCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
  ): QueryBatchRun;

  info(udfPath: string): FunctionInfo | undefined {
    const { queries, mutations, actions = {} } = this.#functions;
    const kinds = [["query", queries], ["mutation", mutations], ["action", actions]] as const;
    const found = kinds.find(([, functions]) => udfPath in functions);
    return found && { kind: found[0], visibility: "public" };
  }

  get readers(): QueryReaders {
    return { free: this.hasFreeReader, onFree: (listener) => void this.#freeListeners.push(listener) };
  }

  onCommits(report: (entries: readonly CommitEntry[]) => void, passes: SkipGroup = () => false): void {
    this.#commitListeners.push({ report, passes });
  }

  onReload(listener: () => void): void {
    this.#reloadListeners.push(listener);
  }

  serveQueries(): void {}

  /** New code was swapped in. */
  reload(): void {
    for (const listener of this.#reloadListeners) listener();
  }

  protected publishCommits(entries: readonly CommitEntry[]): void {
    if (entries.length === 0) return;
    for (const { report } of this.#commitListeners) report(entries);
  }

  /** Commits arrived as rows: listeners that let them pass are not called. */
  protected publishFollowed(group: FollowedGroup): void {
    if (group.count === 0) return;
    // All are started first, like in the product.
    const concerned = this.#commitListeners.filter(({ passes }) => !passes(group));
    for (const { report } of concerned) report(group.entries());
  }

  protected notifyReaderFree(): void {
    for (const listener of this.#freeListeners) listener();
  }
}

/** The parts of the caller that a run has read. */
export class WatchedCaller {
  scope: AuthScope = "nothing";
  readonly #identity: Identity;

  constructor(identity: Identity) {
    this.#identity = identity;
  }

  principal(): string | null {
    if (this.scope === "nothing") this.scope = "principal";
    return this.#identity.principal;
  }

  session(): string | null {
    this.scope = "session";
    return this.#identity.sessionId;
  }
}

/** The outcome of a run. */
export function outcomeOf(run: () => unknown, logLines: readonly string[] = []): Outcome {
  try {
    return { ok: true, value: JSON.stringify(run() ?? null), logLines };
  } catch (error) {
    return { ...failureOf(error), logLines };
  }
}

/** The outcome of an exception. */
export function failureOf(error: unknown): Outcome {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof UserError)) return failed(error instanceof ArgsError ? "args" : "internal", message);
  const data = { code: error.code, data: error.data };
  return { ok: false, error: { kind: "user", message, data }, logLines: [] };
}

/** The outcome of a call of an unknown function. */
export function unknownFunction(udfPath: string): Outcome {
  return failed("unknown_function", `Unknown function ${udfPath}`);
}
