/** The interface of a feature, and the list of all features of a server. */
import { type Context, Hono } from "hono";
import type { SecretKeys } from "../auth/mod.ts";
import type { CommitEntry } from "../engine/types.ts";
import type { IsolateHost } from "../functions/host/mod.ts";
import type { FunctionCall } from "../functions/host_port.ts";
import type { MainAction } from "../functions/main_actions.ts";
import type { Outcome } from "../functions/outcome.ts";
import type { CallPort } from "../functions/system_calls.ts";
import type { Log } from "../kit/log.ts";
import type { Cron } from "../scheduler/mod.ts";
import type { ServeConfig } from "../config/config.ts";

export interface FeatureRoutes {
  /** Mount path, such as `/api/auth`. */
  readonly at: string;
  readonly app: Hono;
  /** Mounted before the middleware that adds headers below `/api`. */
  readonly complete?: boolean;
}

/** A part of the service; members are optional. Its functions and tables are listed in `isolate_entry.ts`. */
export interface Feature {
  readonly routes?: readonly FeatureRoutes[];
  /** Actions that run in the main process before the app's functions, by path. */
  readonly actions?: ReadonlyMap<string, MainAction>;
  /** Implementations of `ctx` methods of actions, by path. */
  readonly ctxActions?: ReadonlyMap<string, MainAction>;
  /** Cron jobs of the service, whose names begin with `svc-`. */
  readonly crons?: readonly Cron[];
  /** Answers the most frequent requests without a router; `null` for all others. Never rejects. */
  respondAtOnce?(request: Request): Response | Promise<Response> | null;
  /** Called with each group of commits, synchronously and in order; on a follower, only if service tables change. */
  applyCommits?(entries: readonly CommitEntry[]): void;
  /** Called when code was swapped or commits may have been missed: cached state may be outdated. */
  reload?(): void;
  /** Starts background work. Called once, after all features are connected; requests may arrive earlier. */
  start?(): Promise<void> | void;
  /** Stops background work, while other features still answer. */
  stop?(): PromiseLike<void> | void;
  /** Releases everything. Called in reverse order, after all features have stopped. */
  [Symbol.asyncDispose]?(): PromiseLike<void>;
}

export interface FeatureContext {
  readonly config: ServeConfig;
  readonly keys: SecretKeys;
  readonly log: Log;
  /** URL of the server for a browser on this machine, without a trailing slash. */
  readonly url: string;
  /** Whether the port accepts connections. */
  readonly listening?: () => boolean;
  /** Stops the server for a restart; `null` if no supervisor would start it again. */
  readonly restart: (() => void) | null;
  /** Restarts the isolates and all features on the current data. */
  readonly requestReplacement: () => void;
  readonly host: IsolateHost;
  /** Whether this process has served before, so that its configuration was usable. */
  readonly isRestart?: boolean;
  /** On a follower: resolves when everything committed in the cluster before the call is shown here, or after a timeout. */
  readonly caughtUp: ((waitMs?: number) => Promise<void>) | undefined;
  /** Calls functions: mutations in the writer, queries through the shared queries, actions of the service and the app. */
  readonly port: FunctionPort;
  /** Address of the client that sent a request. */
  readonly clientOf: (c: Context) => string;
}

export interface FunctionPort extends CallPort {
  act(call: FunctionCall): Promise<Outcome>;
}

/** The features of a server, in the order in which they receive commits. */
export class Features implements AsyncDisposable {
  readonly #host: Pick<IsolateHost, "onCommits" | "onReload">;
  readonly #features: Feature[] = [];
  /** `respondAtOnce` of the features that have it. */
  readonly #atOnce: ((request: Request) => Response | Promise<Response> | null)[] = [];

  constructor(host: Pick<IsolateHost, "onCommits" | "onReload">) {
    this.#host = host;
  }

  /** Appends a feature, which receives commits from now on. */
  add<Added extends Feature>(feature: Added): Added {
    this.#features.push(feature);
    if (feature.applyCommits) {
      this.#host.onCommits(
        (entries) => feature.applyCommits?.(entries),
        ({ changesSystemTables: ofService }) => !ofService,
      );
    }
    if (feature.reload) this.#host.onReload(() => feature.reload?.());
    if (feature.respondAtOnce) this.#atOnce.push((request) => feature.respondAtOnce?.(request) ?? null);
    return feature;
  }

  /** Returns the routes of all features, either the `complete` ones or the others. */
  routes({ complete }: { readonly complete: boolean }): Hono {
    const all = new Hono();
    for (const { at, app, complete: is = false } of this.#partsOf("routes").flat()) {
      if (is === complete) all.route(at, app);
    }
    return all;
  }

  get actions(): ReadonlyMap<string, MainAction> {
    return new Map(this.#partsOf("actions").flatMap((actions) => [...actions]));
  }

  get ctxActions(): ReadonlyMap<string, MainAction> {
    return new Map(this.#partsOf("ctxActions").flatMap((actions) => [...actions]));
  }

  get crons(): readonly Cron[] {
    return this.#partsOf("crons").flat();
  }

  respondAtOnce(request: Request): Response | Promise<Response> | null {
    for (const respond of this.#atOnce) {
      const answer = respond(request);
      if (answer !== null) return answer;
    }
    return null;
  }

  async start(): Promise<void> {
    for (const feature of this.#features) await feature.start?.();
  }

  /** Stops all features in parallel, because they may wait for each other, then releases them. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#features.map((feature) => feature.stop?.()));
    for (const feature of this.#features.toReversed()) await feature[Symbol.asyncDispose]?.();
  }

  #partsOf<Part extends "routes" | "actions" | "ctxActions" | "crons">(
    part: Part,
  ): NonNullable<Feature[Part]>[] {
    return this.#features.map((feature) => feature[part]).filter((
      given,
    ): given is NonNullable<Feature[Part]> => given !== undefined);
  }
}
