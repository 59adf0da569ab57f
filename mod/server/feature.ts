/** A part of the service as the server sees it, and what holds all parts; `feature_list.ts` lists them. */
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

/** Routes of a feature and where they hang. */
export interface FeatureRoutes {
  /** Below which path, such as `/api/auth`. */
  readonly at: string;
  readonly app: Hono;
  /** Answers are complete: mounted in front of what adds headers to everything below `/api`. */
  readonly complete?: boolean;
}

/**
 * What a feature brings. Each part may be missing. Tables and functions in the isolates are no part of this: they stand in
 * the list of `isolate_entry.ts`, because another process loads them.
 */
export interface Feature {
  readonly routes?: readonly FeatureRoutes[];
  /** Actions that main runs, in front of the app's functions, by path. */
  readonly actions?: ReadonlyMap<string, MainAction>;
  /** What stands behind `ctx` of actions, by path. */
  readonly ctxActions?: ReadonlyMap<string, MainAction>;
  /** Crons of the service, whose names begin with `svc-`. */
  readonly crons?: readonly Cron[];
  /** What it does by itself only the leader of a cluster does: it ends before another server leads. */
  readonly leads?: true;
  /** Answers the most frequent requests without a router; `null` for all others. Never rejects. */
  respondAtOnce?(request: Request): Response | Promise<Response> | null;
  /**
   * Told of each group of commits, in order, in the turn in which main learns of it; on a server that follows another of those
   * alone that change tables of the service.
   */
  applyCommits?(entries: readonly CommitEntry[]): void;
  /** New code was swapped in, or commits may have been missed: what is remembered of the database may be old. */
  reload?(): void;
  /** Begins what the feature does by itself. Called once, when everything is wired; requests may come before it. */
  start?(): Promise<void> | void;
  /** Ends what the feature does by itself, while the others still answer. */
  stop?(): PromiseLike<void> | void;
  /** Gives everything up; called in the reverse order of the list, after all have stopped. */
  [Symbol.asyncDispose]?(): PromiseLike<void>;
}

/** What features are made with. */
export interface FeatureContext {
  readonly config: ServeConfig;
  readonly keys: SecretKeys;
  readonly log: Log;
  /** Address of the server for a browser on this machine, without a slash at its end. */
  readonly url: string;
  /** Whether the port takes connections. */
  readonly listening?: () => boolean;
  /** Begins an orderly stop that ends in a restart; `null` when nobody would start the server again. */
  readonly restart: (() => void) | null;
  /** Has the isolates and all features ended and started anew on what the data folder holds then. */
  readonly renew: () => void;
  readonly host: IsolateHost;
  /** Whether something was served before by this process: what it needs beside the database was there then. */
  readonly again?: boolean;
  /** Whether another server still works with the data folder while this one starts, until features begin. */
  readonly takesOver: boolean;
  /**
   * On a server whose commits are made by another one of its cluster: resolves when what was committed anywhere before the
   * call is shown here, or after a bounded time.
   */
  readonly caughtUp: ((waitMs?: number) => Promise<void>) | undefined;
  /** Calls of functions: mutations by the writer, queries by the shared queries, actions of main and of the app. */
  readonly port: FunctionPort;
  /** Address of the client that sent a request. */
  readonly clientOf: (c: Context) => string;
}

export interface FunctionPort extends CallPort {
  act(call: FunctionCall): Promise<Outcome>;
}

/** The features of one server, in the order in which commits are told to them. */
export class Features implements AsyncDisposable {
  readonly #host: Pick<IsolateHost, "onCommits" | "onReload">;
  readonly #features: Feature[] = [];
  /** Those that were told to stop, with their ends. */
  readonly #stopped = new Map<Feature, PromiseLike<void> | void>();
  /** How the features answer at once, those that do. */
  readonly #atOnce: ((request: Request) => Response | Promise<Response> | null)[] = [];

  constructor(host: Pick<IsolateHost, "onCommits" | "onReload">) {
    this.#host = host;
  }

  /** Puts a feature at the end of the list: from now on it is told of commits. */
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

  /** The routes of all; `complete` ones apart from the others. */
  routes({ complete }: { readonly complete: boolean }): Hono {
    const all = new Hono();
    for (const { at, app, complete: is = false } of this.#each("routes").flat()) {
      if (is === complete) all.route(at, app);
    }
    return all;
  }

  get actions(): ReadonlyMap<string, MainAction> {
    return new Map(this.#each("actions").flatMap((actions) => [...actions]));
  }

  get ctxActions(): ReadonlyMap<string, MainAction> {
    return new Map(this.#each("ctxActions").flatMap((actions) => [...actions]));
  }

  get crons(): readonly Cron[] {
    return this.#each("crons").flat();
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

  /** The same in a server that serves already: what cannot begin is told, and keeps nothing else from it. */
  async begin(log: Log): Promise<void> {
    for (const feature of this.#features) {
      // It was told to end before it had begun.
      if (this.#stopped.has(feature)) continue;
      try {
        await feature.start?.();
      } catch (error) {
        log("error", "A part of the server did not begin: restart it", { error });
      }
    }
  }

  /** What only a leader does ends, together and for good: another server does it from now on. All else goes on. */
  async rest(): Promise<void> {
    await Promise.all(this.#features.filter(({ leads }) => leads).map((feature) => this.#stop(feature)));
  }

  /** What the features do by themselves ends together, because one may wait for another: then each gives itself up. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#features.map((feature) => this.#stop(feature)));
    for (const feature of this.#features.toReversed()) await feature[Symbol.asyncDispose]?.();
  }

  #stop(feature: Feature): PromiseLike<void> | void {
    if (!this.#stopped.has(feature)) this.#stopped.set(feature, feature.stop?.());
    return this.#stopped.get(feature);
  }

  #each<Part extends "routes" | "actions" | "ctxActions" | "crons">(
    part: Part,
  ): NonNullable<Feature[Part]>[] {
    return this.#features.map((feature) => feature[part]).filter((
      given,
    ): given is NonNullable<Feature[Part]> => given !== undefined);
  }
}
