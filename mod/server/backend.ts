/** The part of a server behind its HTTP face: the isolates and the features, wired together. */
import { Hono } from "hono";
import { clusterLimits } from "../cluster/postgres/limits.ts";
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import type { IsolateHost, Lent, PassedCalls, RunObserver } from "../functions/host/mod.ts";
import type { Log } from "../kit/log.ts";
import type { Metrics } from "../ops/metrics/mod.ts";
import { isFollower, type ServeConfig } from "../config/config.ts";
import { AppError } from "../config/start_error.ts";
import { type FeatureContext, Features, type FunctionPort } from "./feature.ts";
import { type Given, openGiven, type Parts, startFeatures } from "./feature_list.ts";
import { bringFollowed } from "./features/following.ts";
import { beginInCluster, caughtUpWith, lookedAt } from "./features/cluster.ts";
import { type AppRoutes, appRoutes } from "./http/app_routes.ts";
import { addressOfRequests, clientOfRequests } from "./http/client_of.ts";
import type { WayToLeader } from "./forwarding/forwarding.ts";
import type { ReloadResult } from "./dev/reload_result.ts";
import { refuseWrites } from "./http/refuse_writes.ts";
import { type LeadingParts, leadingParts } from "./workers/leading_parts.ts";
import type { FollowerFigures } from "../cluster/mod.ts";
import { upgradeSocket } from "./http/upgrade.ts";
import type { UpgradedConnection } from "./net/connections.ts";
import { type Isolates, isolateSettings, openIsolates } from "./isolates.ts";

/** What the HTTP server needs of what is behind it. Disposing of it ends the isolates. */
export interface Backend extends AsyncDisposable {
  /** ts of the newest commit. */
  readonly ts: number;
  /** The routes below `/api`: one-shot function calls and those of the features. */
  readonly routes: Hono;
  /** The app's own HTTP routes. */
  readonly appRoutes: AppRoutes;
  /** Routes below `/api` whose answers need no more headers: reads of files, uploads in pieces. */
  readonly completeRoutes?: Hono;
  /** Answers the most frequent requests without a router; `null` for all others. Never rejects. */
  readonly respondAtOnce?: (
    request: Request,
    info: Deno.ServeHandlerInfo,
  ) => Response | Promise<Response> | null;
  /** Has the leader of the cluster answer a request, if it is for it; absent on a server that writes itself. Never rejects. */
  readonly passOn?: (request: Request, info: Deno.ServeHandlerInfo) => Promise<Response> | null;
  /** Where the first administrator is created; `null` when there is one. */
  readonly setupLink: string | null;
  /** Counts requests and answers `/metrics`; absent without `--metrics`. */
  readonly metrics?: Pick<Metrics, "requests" | "respond">;
  /**
   * Answers a WebSocket handshake. Throws `ServiceError` when it is not a valid one; when it is, `upgraded` gives the
   * connection below the socket.
   */
  acceptSocket(
    request: Request,
    below: { readonly upgraded: () => UpgradedConnection; readonly info?: Deno.ServeHandlerInfo },
  ): Response;
  /** Resolves when a socket may be accepted: what is shown here is as new as what its client may have seen elsewhere. */
  readonly caughtUp?: () => Promise<void>;
  /** In a cluster, on who follows: told of each request that is answered here, by its path. What is given is to be waited for. */
  readonly looked?: (path: string) => Promise<void> | null;
  /** For a backend that was made beside another server's: what it does by itself begins now. */
  begin?(): Promise<void>;
  /** Lends the database to another server, between two commits; `null` when that is not possible now. */
  lend?(): Promise<Lent | null>;
  /** Ends what only the leader of a cluster does by itself, for good; all else goes on. */
  rest?(): Promise<void>;
  /** Commits nothing any more: mutations run elsewhere, when what is under way has ended. `false`: not now. */
  retire?(mutate: PassedCalls["mutate"]): Promise<boolean>;
  /** Lets go of the database, but for reading: the commits of others are not applied any more. */
  letGo?(): Promise<void>;
  /** Runs calls of a server whose database this one has taken over. */
  readonly passedCalls?: PassedCalls;
  /** For processes that take connections beside this one. */
  readonly leading?: LeadingParts;
  /**
   * Closes every socket with 1012; resolves when the close frames have left, or after a bounded time. What is under way is
   * still answered, by one that has let go without waiting for newer commits: another backend shows those by now.
   */
  closeSockets(): Promise<void>;
  /** Loads the app's code anew; the old code goes on serving when the new one is broken. */
  reload(): Promise<ReloadResult>;
  /** Makes the next `reload` shorter, at the cost of two processes that wait for it. */
  standBy?(): void;
}

/** What a backend is started in. */
export interface BackendSurroundings {
  readonly log: Log;
  /** Address of the server for a browser on this machine, without a slash at its end. */
  readonly url: string;
  /** Begins an orderly stop that ends in a restart; `null` when nobody would start the server again. */
  readonly restart: (() => void) | null;
  /** Whether something was served before it by this process: what it needs beside the database was there then. */
  readonly again?: boolean;
  /** Sockets that the system has room for. */
  readonly socketsMax: number;
  /** Whether the port takes connections. */
  readonly listening?: () => boolean;
  /** Has this backend ended and another one started in its place, which finds the newer data that are ready. */
  readonly renew: () => void;
  /** Aborted when the server is to stop: a start that is under way has to end soon then. */
  readonly stopping?: AbortSignal;
  /**
   * For a data folder that another server uses: resolves when that one has let go of the database. What the backend does by
   * itself begins with `begin` then. In a cluster `fits` is given the version that the database names when all is applied,
   * and throws when this is made with another one: what was served before goes on then.
   */
  readonly letGo?: (fits: (named: string | null) => void) => Promise<void>;
  /** The cluster that this server is one of; `null` or absent: it is alone. */
  readonly cluster?: PostgresCluster | null;
  /** How this server reaches the one that leads its cluster, while that is another one. */
  readonly toLeader?: WayToLeader;
  /** From now on the app's front end lies in this folder, `null`: it has none; unless it was named by an option. */
  readonly serveFrontend?: (folder: string | null) => Promise<void>;
  /** What the processes beside this one have to do. */
  readonly workerFigures?: () => readonly FollowerFigures[];
}

/** Starts the isolates and the features. Rejects with an `AppError` when the app cannot be loaded. */
export async function startBackend(
  given: ServeConfig,
  surroundings: BackendSurroundings,
): Promise<Backend> {
  await using opened = new AsyncDisposableStack();
  const { cluster = null, log } = surroundings;
  const config = await beginInCluster(given, { cluster, willLead: surroundings.letGo !== undefined });
  await bringFollowed(config, surroundings);
  const { letGo } = surroundings;
  const { observer, ...found } = await openGiven(
    { config, log, ...(surroundings.again !== undefined && { again: surroundings.again }) },
    opened,
  );
  const toLeader = config.clusterRole === "follower" ? surroundings.toLeader : undefined;
  const isolates = await openIsolates(config, {
    secret: found.secret,
    observer,
    log,
    cluster,
    ...(letGo && { letGo }),
    ...(toLeader && { leader: toLeader.port }),
  });
  const host = opened.use(isolates.host);
  const parts = {
    ...surroundings,
    ...found,
    serveFrontend: surroundings.serveFrontend ?? (() => Promise.resolve()),
    cluster,
    toLeader,
    config,
    host,
    begin: isolates.begin,
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

interface BackendParts extends Omit<BackendSurroundings, "toLeader">, Given {
  /** Absent on a server that writes itself. */
  readonly toLeader: WayToLeader | undefined;
  readonly cluster: PostgresCluster | null;
  readonly serveFrontend: Given["serveFrontend"];
  readonly config: ServeConfig;
  readonly host: IsolateHost;
  /** Has the isolates begin. */
  readonly begin: Isolates["begin"];
  /** Told of runs. */
  readonly observer: RunObserver;
}

/** Starts the features; `opened` gets what has to be given up at the end. */
async function connect(
  given: BackendParts,
  opened: AsyncDisposableStack,
): Promise<Omit<Backend, "ts" | typeof Symbol.asyncDispose>> {
  const { config, host, metrics, toLeader, log } = given;
  const features = opened.use(new Features(host));
  const parts = { ...given, features } as BackendParts & Parts;
  const port: FunctionPort = {
    mutate: (call) => host.mutate(call),
    query: (call) => parts.sync.hub.query(call),
    act: (call) => host.act(call),
  };
  const takesOver = given.letGo !== undefined;
  const clientOf = clientOfRequests(config.trustedProxies);
  let closed: Promise<void> | null = null;
  /** The newer commits are another backend's to show. */
  let hasLetGo = false;
  const caughtUp = given.cluster === null ? undefined : caughtUpWith(given.cluster, {
    host,
    stuck: () => closed !== null || parts.following.stuck() !== null,
  });
  const context: FeatureContext = {
    ...given,
    keys: given.secret.keys,
    port,
    clientOf,
    takesOver,
    caughtUp: isFollower(config) ? caughtUp : undefined,
  };
  // While it waits for the database nothing else is left to be made.
  if (!takesOver) await given.begin();
  await startFeatures(context, parts);
  const { accounts, logs, steering, following, sync: { hub, calls } } = parts;
  const { actions, ctxActions } = features;
  host.serveActions({ actions, ctxActions, door: steering.doorOf(accounts.authenticator) });
  const follows = isFollower(config);
  if (takesOver) {
    await given.begin();
    hub.begin();
  }
  const [setupLink] = await Promise.all([follows ? null : accounts.setupLink(), steering.load()]);
  if (!takesOver) await features.start();
  // Nobody is shown a state of long ago; who leads has been found to be at the end of the log.
  if (follows) await caughtUp?.(clusterLimits.startMs);
  const stuck = parts.following.stuck();
  if (stuck !== null) {
    throw new AppError(`The app of the cluster cannot be served: ${stuck}`, { code: "app_not_loaded" });
  }
  const closeSockets = () => {
    logs.endStreams();
    closed ??= hub.shutdown();
    // Not before: no socket may hear of a commit that it is not shown.
    if (hasLetGo) host.letAnswersGo();
    return closed;
  };
  // What would write is passed on before it comes to a route.
  const guarded = () => follows && toLeader === undefined ? new Hono().use("*", refuseWrites) : new Hono();
  const addressOf = addressOfRequests(config.trustedProxies);
  return {
    begin: () => features.begin(log),
    lend: () => lendDatabase(host, closeSockets),
    rest: () => features.rest(),
    retire: (mutate) => host.retire(mutate),
    async letGo() {
      await following.stop?.();
      hasLetGo = true;
      // Nothing is given to it any more. That its process ends is not waited for: it is seen to by who disposes of it all.
      host.closeWriter().catch((error) =>
        log("error", "The writer of before did not end as it should", { error })
      );
    },
    passedCalls: port,
    leading: leadingParts(context, { ...parts, settings: isolateSettings(config, given.secret) }),
    ...(metrics && { metrics }),
    ...(toLeader && {
      passOn: (request: Request, info: Deno.ServeHandlerInfo) =>
        toLeader.pass(request, { info, host, client: addressOf(request, info) }),
    }),
    setupLink,
    routes: guarded().route("/", calls.routes).route("/", features.routes({ complete: false })),
    completeRoutes: guarded().route("/", features.routes({ complete: true })),
    respondAtOnce: (request, info) => calls.handleDirectly(request, info) ?? features.respondAtOnce(request),
    appRoutes: appRoutes({ host, authenticator: accounts.authenticator, dev: config.dev, addressOf }),
    acceptSocket(request, { upgraded, info }) {
      // Once it is upgraded, the request does not tell any more.
      const address = addressOf(request, info);
      const { socket, response } = upgradeSocket(request);
      const connection = upgraded();
      socket.addEventListener("close", () => connection.closed());
      hub.accept(socket, { connection, address });
      return response;
    },
    ...(caughtUp && { caughtUp }),
    ...(follows && caughtUp && given.cluster && { looked: lookedAt(given.cluster, caughtUp) }),
    closeSockets,
    reload: () => host.reload(),
    standBy: () => host.standBy(),
  };
}

async function lendDatabase(
  host: IsolateHost,
  closeSockets: () => Promise<void>,
): Promise<Lent | null> {
  const lent = await host.lend();
  if (lent === null) return null;
  return {
    ...lent,
    passOn(to) {
      // Commits are not told here any more: what a socket would get from now on may hold some of one and not the rest.
      void closeSockets();
      lent.passOn(to);
    },
  };
}
