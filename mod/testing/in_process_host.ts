/**
 * Runs an app's functions on the real engine in the current process. Uses the same loader and runner as isolates. Features
 * that need a process are missing: memory limits and the interruption of endless loops.
 */
import {
  type CommitEntry,
  decodeId,
  openReaderDatabase,
  openWriterDatabase,
  type ReaderDatabase,
  type ReadTransaction,
  type WriterDatabase,
} from "../engine/mod.ts";
import { requestPath } from "../kit/http_request.ts";
import { setTableResolver } from "../functions/api/service.ts";
import type {
  FunctionCall,
  FunctionHost,
  FunctionInfo,
  MutationAnswer,
  MutationCall,
  QueryAnswer,
  QueryBatchRun,
  QueryReaders,
} from "../functions/host_port.ts";
import {
  type ActionEnvironment,
  currentCall,
  failWaitingHandler,
  type LoadedApp,
  runAction,
  runMutation,
  runQuery,
  setFunctionsUrl,
  type SubCaller,
  withActionCtx,
} from "../functions/isolate/mod.ts";
import type { MainAction } from "../functions/main_actions.ts";
import { type CallError, type Ending, failed, type Outcome } from "../functions/outcome.ts";
import {
  nextRequest,
  numberError,
  type RouteAnswer,
  type RouteRequest,
  RouteTable,
  wireHeaders,
} from "../functions/host/mod.ts";
import { functionLimits } from "../limits.ts";
import { inAction, inTransaction, useFunctionEnvironment } from "./function_environment.ts";
import { exclusively } from "./exclusively.ts";

export interface InProcessHostOptions {
  readonly app: LoadedApp;
  /** URL of the functions folder, removed from stack traces; empty for imported modules. */
  readonly functionsUrl: string;
  readonly databasePath: string;
  /** Clock of functions, in milliseconds since the epoch. */
  readonly now: () => number;
  /** Variables of `ctx.env`. */
  readonly env: Readonly<Record<string, string>>;
  /** Timeouts of queries and mutations in real milliseconds. Default: those of the server. */
  readonly callTimeoutMs?: number | undefined;
}

export class InProcessHost implements FunctionHost, Disposable {
  readonly #options: InProcessHostOptions;
  readonly #writer: WriterDatabase;
  readonly #reader: ReaderDatabase;
  /** The app's HTTP routes. A response resolves when it is complete. */
  readonly routes = {
    find: (method: string, pathname: string): string | null => this.#routeTable.find(method, pathname),
    respond: (request: RouteRequest): Promise<RouteAnswer> => this.#respond(request),
  };
  readonly #routeTable: RouteTable;
  readonly #functionEnvironment = useFunctionEnvironment();
  readonly #commitListeners: ((entries: readonly CommitEntry[]) => void)[] = [];
  readonly #freeListeners: (() => void)[] = [];
  /** The ts of the last commit, updated before listeners are notified. */
  #ts: number;
  #batchRunning = false;
  #actionCount = 0;
  #callsInFlight = 0;
  #serveQuery: ((call: FunctionCall) => Promise<Outcome>) | null = null;
  /** Set by `serveCtxActions`. */
  #ctxActions: ReadonlyMap<string, MainAction> = new Map();
  #closed = false;

  /** Opens the database and applies the app's schema. Throws `SchemaError` if documents do not match it. */
  constructor(options: InProcessHostOptions) {
    this.#options = options;
    const { app, databasePath, functionsUrl } = options;
    this.#routeTable = new RouteTable(app.routes);
    try {
      setFunctionsUrl(functionsUrl);
      setTableResolver(tableOfId);
      this.#writer = openWriterDatabase(databasePath);
    } catch (error) {
      this.#functionEnvironment.release();
      throw error;
    }
    try {
      this.#writer.applySchema(app.schema);
      this.#reader = openReaderDatabase(databasePath);
      this.#reader.useSchema(app.schema);
    } catch (error) {
      this.#writer[Symbol.dispose]();
      this.#functionEnvironment.release();
      throw error;
    }
    this.#ts = this.#writer.ts;
  }

  /** Call only when nothing is in flight; see {@linkcode settled}. */
  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader[Symbol.dispose]();
    this.#writer[Symbol.dispose]();
    this.#functionEnvironment.release();
  }

  get ts(): number {
    return this.#ts;
  }

  /** Number of queries, mutations and actions in flight. */
  get callsInFlight(): number {
    return this.#callsInFlight;
  }

  info(udfPath: string): FunctionInfo | undefined {
    return this.#options.app.functions.get(udfPath)?.spec;
  }

  get readers(): QueryReaders {
    return { free: !this.#batchRunning, onFree: (listener) => void this.#freeListeners.push(listener) };
  }

  onCommits(listener: (entries: readonly CommitEntry[]) => void): void {
    this.#commitListeners.push(listener);
  }

  /** The code is loaded once. */
  onReload(): void {}

  serveQueries(run: (call: FunctionCall) => Promise<Outcome>): void {
    this.#serveQuery = run;
  }

  /** Handlers of `ctx` calls made by actions, by function path. */
  serveCtxActions(actions: ReadonlyMap<string, MainAction>): void {
    this.#ctxActions = actions;
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    return this.#counted(() =>
      exclusively(async () => {
        if (this.#closed) return { outcome: closedOutcome, ts: this.#ts, replayed: false };
        try {
          return await this.#mutate(call);
        } catch (error) {
          this.#writer.rollbackGroup();
          return { outcome: failed("internal", messageOf(error)), ts: this.#ts, replayed: false };
        }
      })
    );
  }

  startQueryBatch(
    queries: readonly FunctionCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
  ): QueryBatchRun {
    this.#batchRunning = true;
    const pinned = Promise.withResolvers<number>();
    const done = this.#counted(() =>
      exclusively(async () => {
        if (!this.#closed) await this.#runQueryBatch(queries, { onAnswer, onPinned: pinned.resolve });
      })
    ).then(() => {
      this.#batchRunning = false;
      for (const listener of this.#freeListeners) listener();
    });
    return { pinned: pinned.promise, done };
  }

  act(call: FunctionCall): Promise<Outcome> {
    return this.#counted(() => this.#act(call, 0));
  }

  /** Never rejects. */
  async #respond({ request, route, identity }: RouteRequest): Promise<RouteAnswer> {
    const { app, now } = this.#options;
    const handler = app.handlers.get(route);
    if (handler === undefined) throw new TypeError(`Route ${route} does not exist`);
    let asked: Request;
    try {
      asked = requestOf(request);
    } catch (error) {
      return { ok: false, error: { kind: "args", message: messageOf(error), data: null } };
    }
    return await this.#counted(async () => {
      let head: ResponseInit | null = null;
      let body: ArrayBuffer | null = null;
      const udfPath = `${request.method} ${requestPath(request)}`;
      const call = { call: ++this.#actionCount, udfPath, identity };
      const ended = Promise.withResolvers<void>();
      const environment = this.#actionEnvironment({ udfPath, identity }, { depth: 0, ended: ended.promise });
      const { ending } = await inAction(
        now,
        () =>
          withActionCtx(app, { ...call, ...environment }, async (ctx) => {
            const answer: unknown = await handler(ctx as never, asked);
            if (!(answer instanceof Response) || answer.status < 200) {
              throw new TypeError("The handler of a route must return a Response");
            }
            const { status, statusText } = answer;
            head = { status, statusText, headers: pairsOf(wireHeaders(answer.headers)) };
            // Read the body while the handler's ctx is open, because it may be a stream.
            if (request.method === "HEAD") await answer.body?.cancel();
            else if (answer.body !== null) body = await answer.arrayBuffer();
            return "null";
          }),
      ).finally(ended.resolve);
      if (ending.ok && head !== null) return { ok: true, response: new Response(body, head) };
      const error = ending.ok ? failedOf("The route ended without a response") : ending.error;
      error.request = nextRequest();
      return head === null
        ? { ok: false, error }
        : { ok: true, response: new Response(brokenOff(error.message), head) };
    });
  }

  async #act(call: FunctionCall, depth: number): Promise<Outcome> {
    if (this.#closed) return closedOutcome;
    const { app, now } = this.#options;
    const message = { type: "RunAction", call: ++this.#actionCount, ...call } as const;
    const timeout = Promise.withResolvers<Outcome>();
    const { actionTimeoutMs } = functionLimits;
    const timer = setTimeout(
      () => timeout.resolve(failed("internal", timeoutText("action", actionTimeoutMs))),
      actionTimeoutMs,
    );
    const ended = Promise.withResolvers<void>();
    const environment = this.#actionEnvironment(call, { depth, ended: ended.promise });
    const run = inAction(now, () => runAction(app, message, environment));
    const answer = run.then(({ ending, logLines }) => outcomeOf(ending, logLines));
    try {
      return await Promise.race([answer, timeout.promise]);
    } finally {
      clearTimeout(timer);
      ended.resolve();
    }
  }

  /** Context of an action. */
  #actionEnvironment(
    { udfPath: calledBy, identity, lineage }: Pick<FunctionCall, "udfPath" | "identity" | "lineage">,
    { depth, ended }: { readonly depth: number; readonly ended: Promise<void> },
  ): ActionEnvironment {
    const { env, now } = this.#options;
    const subCall: SubCaller = ({ kind, udfPath, args }) => {
      const call = { udfPath, args, identity, origin: "server", ...(lineage && { lineage }) } as const;
      return this.#serve({ ...call, calledBy, callerEnded: ended }, { kind, depth });
    };
    return { env: Object.freeze({ ...env }), now, subCall };
  }

  async #serve(
    call: FunctionCall,
    { kind, depth }: { readonly kind: "query" | "mutation" | "action"; readonly depth: number },
  ): Promise<Outcome> {
    if (kind === "mutation") return (await this.mutate(call)).outcome;
    if (kind === "query") {
      return await this.#serveQuery?.(call) ?? failed("internal", "Queries are not available");
    }
    const ctxAction = this.#ctxActions.get(call.udfPath);
    if (ctxAction !== undefined) return await ctxAction.run(call.args, call.identity, call);
    if (depth + 1 < functionLimits.nestingMax) return await this.#act(call, depth + 1);
    return failed("internal", `Actions are nested more than ${functionLimits.nestingMax} deep`);
  }

  async #mutate(call: MutationCall): Promise<MutationAnswer> {
    setFunctionsUrl(this.#options.functionsUrl);
    this.#writer.openGroup();
    const { ending, logLines, ts, replayed, entry } = await this.#patiently(
      "mutation",
      () => runMutation(this.#options.app, this.#writer, { mutation: call, at: this.#options.now() }),
    );
    this.#writer.commitGroup("");
    this.#ts = this.#writer.ts;
    if (entry !== null) { for (const listener of this.#commitListeners) listener([entry]); }
    return { outcome: outcomeOf(ending, logLines), ts, replayed };
  }

  async #runQueryBatch(
    queries: readonly FunctionCall[],
    { onAnswer, onPinned }: {
      readonly onAnswer: (index: number, answer: QueryAnswer) => void;
      readonly onPinned: (ts: number) => void;
    },
  ): Promise<void> {
    setFunctionsUrl(this.#options.functionsUrl);
    const ts = this.#reader.openSnapshot();
    try {
      onPinned(ts);
      for (const [index, call] of queries.entries()) {
        onAnswer(index, { ...await this.#query(call, this.#reader.beginQuery()), ts });
      }
    } finally {
      this.#reader.closeSnapshot();
    }
  }

  async #query(call: FunctionCall, reads: ReadTransaction): Promise<Omit<QueryAnswer, "ts">> {
    const startedAt = performance.now();
    const { ending, logLines, readSet, scope, nondeterministic } = await this.#patiently(
      "query",
      () => runQuery(this.#options.app, call, { reads, at: this.#options.now() }),
    );
    const durationMs = performance.now() - startedAt;
    return { outcome: outcomeOf(ending, logLines), readSet, scope, nondeterministic, durationMs };
  }

  /** Runs a function. Fails it if it awaits longer than its timeout. */
  async #patiently<T>(kind: "query" | "mutation", run: () => Promise<T>): Promise<T> {
    const { callTimeoutMs } = this.#options;
    const { queryTimeoutMs, mutationTimeoutMs } = functionLimits;
    const timeoutMs = callTimeoutMs ?? (kind === "query" ? queryTimeoutMs : mutationTimeoutMs);
    const timer = setTimeout(() => failWaitingHandler(new Error(timeoutText(kind, timeoutMs))), timeoutMs);
    try {
      return await inTransaction(run);
    } finally {
      clearTimeout(timer);
    }
  }

  async #counted<T>(run: () => Promise<T>): Promise<T> {
    this.#callsInFlight++;
    try {
      return await run();
    } finally {
      this.#callsInFlight--;
    }
  }
}

/** Builds the request for a handler. Throws `RangeError` if the headers exceed the limit. */
function requestOf({ method, url, headers, body, signal }: Request): Request {
  const hasBody = body !== null && method !== "GET" && method !== "HEAD";
  return new Request(url, {
    method,
    headers: pairsOf(wireHeaders(headers)),
    signal,
    ...(hasBody && { body, duplex: "half" }),
  });
}

function pairsOf(headers: ReturnType<typeof wireHeaders>): [string, string][] {
  return headers.map(([name, value]) => [name, value]);
}

/** Returns a body that fails, for a handler that fails after it started its response. */
function brokenOff(message: string): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start: (controller) => controller.error(new Error(`The response was interrupted: ${message}`)),
  });
}

function failedOf(message: string): CallError {
  return { kind: "internal", message, data: null };
}

const closedOutcome = failed("internal", "The test server is closed");

function timeoutText(kind: string, timeoutMs: number): string {
  return `The ${kind} ran longer than its limit of ${timeoutMs / 1000} seconds`;
}

/** Outside of a run, only the format of an id can be checked. */
function tableOfId(id: string): string | null | undefined {
  const reads = currentCall()?.reads;
  if (reads !== undefined) return reads.tableOf(id);
  return decodeId(id) === null ? null : undefined;
}

function outcomeOf(ending: Ending, logLines: readonly string[]): Outcome {
  if (ending.ok) return { ok: true, value: ending.text, logLines };
  const outcome: Outcome = { ok: false, error: ending.error, logLines };
  // There is no log, but the response contains a request id as on a server.
  numberError(outcome, nextRequest());
  return outcome;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
