/** Actions of the service itself, which main runs: they need what no isolate has, such as the mail server. */
import type { z } from "zod";
import { ServiceError, UserError } from "../errors.ts";
import type { CommitEntry } from "../engine/types.ts";
import type {
  FunctionCall,
  FunctionHost,
  FunctionInfo,
  MutationAnswer,
  MutationCall,
  QueryAnswer,
  Wave,
} from "./host_port.ts";
import type { Identity } from "./identity.ts";
import { failed, type Outcome } from "./outcome.ts";

/** An action that main runs. */
export interface MainAction {
  /** `internal`: only the server itself calls it. Public when absent. */
  readonly visibility?: FunctionInfo["visibility"];
  /** Runs with the caller's arguments, checked by {@linkcode mainAction}. The result is JSON. */
  run(args: Record<string, unknown>, identity: Identity): Promise<Outcome>;
}

/** Makes an action of a schema for its arguments and a handler. `ServiceError` and `UserError` reach the caller. */
export function mainAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity) => Promise<unknown>,
): MainAction {
  return {
    async run(args, identity) {
      const parsed = schema.safeParse(args);
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        return failed(
          "args",
          `${["args", ...issue?.path ?? []].join(".")}: ${issue?.message ?? "Invalid input"}`,
        );
      }
      try {
        const value = JSON.stringify(await handler(parsed.data, identity) ?? null);
        return { ok: true, value, logLines: [] };
      } catch (error) {
        return outcomeOf(error);
      }
    },
  };
}

/** Like {@linkcode mainAction}, for an action that only the server itself calls. */
export function internalMainAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity) => Promise<unknown>,
): MainAction {
  return { visibility: "internal", run: mainAction(schema, handler).run };
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof UserError || error instanceof ServiceError) {
    const data = { code: error.code, data: error instanceof UserError ? error.data : null };
    return { ok: false, error: { kind: "user", message: error.message, data }, logLines: [] };
  }
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error && error.stack !== undefined ? { stack: error.stack } : {};
  return { ok: false, error: { kind: "internal", message, data: null, ...stack }, logLines: [] };
}

/** Told how an action ended that main ran, and how long it took. */
type OnActionEnd = (call: FunctionCall, end: { readonly outcome: Outcome; readonly ms: number }) => void;

/** A host whose callers also find the actions that main runs. Everything else goes on to the host behind it. */
export class HostWithMainActions implements FunctionHost {
  readonly #host: FunctionHost;
  readonly #actions: ReadonlyMap<string, MainAction>;
  readonly #onEnd: OnActionEnd;

  /** `onEnd` is told how each action that main runs ended. */
  constructor(
    host: FunctionHost,
    actions: ReadonlyMap<string, MainAction>,
    onEnd: OnActionEnd = () => {},
  ) {
    this.#host = host;
    this.#actions = actions;
    this.#onEnd = onEnd;
  }

  get ts(): number {
    return this.#host.ts;
  }

  get readerFree(): boolean {
    return this.#host.readerFree;
  }

  info(udfPath: string): FunctionInfo | undefined {
    const action = this.#actions.get(udfPath);
    // A function's place among the app's: what clients see is the same.
    if (action !== undefined) return { kind: "action", visibility: action.visibility ?? "public" };
    return this.#host.info(udfPath);
  }

  async act(call: FunctionCall): Promise<Outcome> {
    const action = this.#actions.get(call.udfPath);
    if (action === undefined) return await this.#host.act(call);
    if (action.visibility === "internal" && call.origin !== "system") {
      return failed("unknown_function", `There is no function "${call.udfPath}"`);
    }
    const since = performance.now();
    const outcome = await action.run(call.args, call.identity);
    this.#onEnd(call, { outcome, ms: performance.now() - since });
    return outcome;
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    return this.#host.mutate(call);
  }

  startWave(queries: readonly FunctionCall[], onAnswer: (index: number, answer: QueryAnswer) => void): Wave {
    return this.#host.startWave(queries, onAnswer);
  }

  onReaderFree(listener: () => void): void {
    this.#host.onReaderFree(listener);
  }

  onCommits(listener: (entries: readonly CommitEntry[]) => void): void {
    this.#host.onCommits(listener);
  }

  onReload(listener: () => void): void {
    this.#host.onReload(listener);
  }

  serveQueries(run: (call: FunctionCall) => Promise<Outcome>): void {
    this.#host.serveQueries(run);
  }
}
