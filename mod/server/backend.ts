/** The backend of a server: its isolates and features, without the HTTP layer. */
import { Hono } from "hono";
import { clusterLimits } from "../cluster/postgres/limits.ts";
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import type { IsolateHost, RunObserver } from "../functions/host/mod.ts";
import type { Log } from "../kit/log.ts";
import type { Metrics } from "../ops/metrics/mod.ts";
import { isFollower, type ServeConfig } from "../config/config.ts";
import { AppError } from "../config/start_error.ts";
import { type FeatureContext, Features, type FunctionPort } from "./feature.ts";
import { type FeatureParts, openResources, type ServerResources, startFeatures } from "./feature_list.ts";
import { caughtUpWith } from "./features/cluster.ts";
import { type AppRoutes, appRoutes, refuseWrites } from "./http/app_routes.ts";
import { acceptSocket, addressOfRequests, clientOfRequests } from "./http/requests.ts";
import type { LeaderForwarding } from "./forwarding/cluster_links.ts";
import type { ReloadResult } from "./dev/dev_mode.ts";
import { type LeaderParts, leaderPartsOf } from "./forwarding/leader_parts.ts";
import type { FollowerFigures } from "../cluster/mod.ts";
import type { UpgradedConnection } from "./net/connections.ts";
import { isolateSettings, openIsolates } from "./isolates.ts";

/** Routes of a backend, which the router of the server includes. */
export interface BackendRoutes {
  /** Routes below `/api`: function calls and the routes of features. */
  readonly routes: Hono;
  readonly appRoutes: AppRoutes;
  /** Routes below `/api` whose responses need no further headers: file downloads, resumable uploads. */
  readonly completeRoutes?: Hono;
  /** Counts requests; absent without metrics. `respond` answers `/metrics`; absent without `--metrics`. */
  readonly metrics?: {
    readonly requests: Pick<Metrics["requests"], "count">;
    readonly respond?: Metrics["respond"];
  };
}

/** The interface of the HTTP layer. Disposing of it ends the isolates. */
export interface Backend extends AsyncDisposable {
  /** ts of the newest commit. */
  readonly ts: number;
  readonly http: BackendRoutes;
  /** Answers a request, by `route` unless a shorter way exists. Never rejects. */
  respond(
    request: Request,
    info: Deno.ServeHandlerInfo,
    route: () => Response | Promise<Response>,
  ): Response | Promise<Response>;
  /** URL that creates the first administrator; `null` if there is one. */
  readonly setupLink: string | null;
  /** Upgrades a socket once all commits a client may have seen are shown. Throws a `ServiceError` for a bad handshake. */
  acceptSocket(
    request: Request,
    below: { readonly upgraded: () => UpgradedConnection; readonly info?: Deno.ServeHandlerInfo },
  ): Response | Promise<Response>;
  /** Parts that worker processes and followers use. */
  readonly leaderParts?: LeaderParts;
  /** Closes every socket with 1012. Resolves when the close frames are sent, or after a timeout. Calls in flight are still answered. */
  closeSockets(): Promise<void>;
  /** Reloads the app's code; the old code stays in use if the new code cannot be loaded. */
  reload(): Promise<ReloadResult>;
  /** Makes the next `reload` faster, at the cost of two idle processes. */
  standBy?(): void;
}

/** Environment of a backend: port, cluster and lifecycle. */
export interface BackendOptions {
  readonly log: Log;
  /** URL of the server for a browser on this machine, without a trailing slash. */
  readonly url: string;
  /** Stops the server for a restart; `null` if no supervisor would start it again. */
  readonly restart: (() => void) | null;
  /** Whether this process has served before, so that its configuration was usable. */
  readonly isRestart?: boolean;
  readonly socketsMax: number;
  /** Whether the port accepts connections. */
  readonly listening?: () => boolean;
  /** Replaces this backend with a new one, which uses the newer data that is ready. */
  readonly requestReplacement: () => void;
  /** Aborted when the server stops: a start in progress ends soon. */
  readonly stopping?: AbortSignal;
  /** For a shared database: called when all else is ready; resolves when the database is free. */
  readonly databaseFree?: () => Promise<void>;
  /** `null` or absent outside a cluster. */
  readonly cluster?: PostgresCluster | null;
  readonly leader?: LeaderForwarding;
  /** Serves the app's frontend from this folder (`null`: none), unless an option names another. */
  readonly serveFrontend?: (folder: string | null) => Promise<void>;
  /** Load of each worker process. */
  readonly workerFigures?: () => readonly Partial<FollowerFigures>[];
}

/** Starts the isolates and the features. Rejects with an `AppError` if the app cannot be loaded. */
export async function startBackend(
  config: ServeConfig,
  surroundings: BackendOptions,
): Promise<Backend> {
  await using opened = new AsyncDisposableStack();
  const { cluster = null, databaseFree, log } = surroundings;
  const { observer, ...found } = await openResources(
    { config, log, ...(surroundings.isRestart !== undefined && { isRestart: surroundings.isRestart }) },
    opened,
  );
  const toLeader = config.clusterRole === "follower" ? surroundings.leader : undefined;
  const isolates = await openIsolates(config, {
    secret: found.secret,
    observer,
    log,
    cluster,
    ...(databaseFree && { databaseFree }),
    ...(toLeader && { leader: toLeader.port }),
  });
  const host = opened.use(isolates.host);
  await isolates.start();
  const parts = {
    ...surroundings,
    ...found,
    serveFrontend: surroundings.serveFrontend ?? (() => Promise.resolve()),
    cluster,
    toLeader,
    leaderRooms: toLeader?.rooms ?? null,
    leaderRequest: toLeader?.request ?? null,
    config,
    host,
    observer,
  };
  const backend = await connect(parts, opened);
  const resources = opened.move();
  return {
    ...backend,
    get ts() {
      return host.ts;
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

interface BackendParts extends Omit<BackendOptions, "toLeader">, ServerResources {
  /** Absent on a server that commits itself. */
  readonly toLeader: LeaderForwarding | undefined;
  readonly cluster: PostgresCluster | null;
  readonly serveFrontend: ServerResources["serveFrontend"];
  readonly config: ServeConfig;
  readonly host: IsolateHost;
  /** Observes the runs of functions. */
  readonly observer: RunObserver;
}

/** Starts the features and connects them to the isolates. Adds what must be closed to `opened`. */
async function connect(
  given: BackendParts,
  opened: AsyncDisposableStack,
): Promise<Omit<Backend, "ts" | typeof Symbol.asyncDispose>> {
  const { config, host, metrics, telemetry, toLeader } = given;
  const follows = isFollower(config);
  const features = opened.use(new Features(host));
  const parts = { ...given, features } as BackendParts & FeatureParts;
  const port: FunctionPort = {
    mutate: (call) => host.mutate(call),
    query: (call) => parts.sync.hub.query(call),
    ...(!follows && { queryInWriter: async (call) => (await host.mutate(call)).outcome }),
    act: (call) => host.act(call),
  };
  const clientOf = clientOfRequests(config.trustedProxies);
  let closed: Promise<void> | null = null;
  const caughtUp = given.cluster === null ? undefined : caughtUpWith(given.cluster, {
    host,
    stuck: () => closed !== null || parts.following.stuck() !== null,
  });
  const context: FeatureContext = {
    ...given,
    keys: given.secret.keys,
    port,
    clientOf,
    caughtUp: follows ? caughtUp : undefined,
  };
  await startFeatures(context, parts);
  const { accounts, logs, streaming, steering, sync: { hub, calls } } = parts;
  const { actions, ctxActions } = features;
  host.serveActions({ actions, ctxActions, access: steering.actionAccess(accounts.authenticator) });
  const [setupLink] = await Promise.all([follows ? null : accounts.setupLink(), steering.load()]);
  await features.start();
  // Clients must not see an old state. A leader has already applied the whole log.
  if (follows) await caughtUp?.(clusterLimits.startMs);
  const stuck = parts.following.stuck();
  if (stuck !== null) {
    throw new AppError(`Cannot serve the app of the cluster: ${stuck}`, { code: "app_not_loaded" });
  }
  // With a leader, writes are forwarded before they reach a route.
  const guarded = () => follows && toLeader === undefined ? new Hono().use("*", refuseWrites) : new Hono();
  const addressOf = addressOfRequests(config.trustedProxies);
  return {
    leaderParts: leaderPartsOf(context, { ...parts, settings: isolateSettings(config, given.secret) }),
    setupLink,
    http: {
      routes: guarded().route("/", calls.routes).route("/", features.routes({ complete: false })),
      completeRoutes: guarded().route("/", features.routes({ complete: true })),
      appRoutes: appRoutes({
        routes: host.routes,
        authenticator: accounts.authenticator,
        dev: config.dev,
        addressOf,
        ...(telemetry && { spans: telemetry }),
      }),
      ...(metrics && {
        metrics: { requests: metrics.requests, ...(config.metrics && { respond: metrics.respond }) },
      }),
    },
    respond(request, info, route) {
      const forwarded = toLeader?.forward(request, { info, host, client: addressOf(request, info) });
      if (forwarded) return forwarded;
      return calls.handleDirectly(request, info) ?? features.respondAtOnce(request) ?? route();
    },
    acceptSocket(request, below) {
      const accept = () => acceptSocket({ hub, addressOf }, request, below);
      return caughtUp === undefined ? accept() : caughtUp().then(accept);
    },
    closeSockets() {
      logs.endStreams();
      streaming.endReaders();
      return closed ??= hub.shutdown();
    },
    reload: () => host.swaps.reload(),
    standBy: () => host.swaps.standBy(),
  };
}
