/** The backend of a worker: its own readers, sockets and sign-in state. Writes go to the leader. */
import {
  AccessTokens,
  AccountAuthenticator,
  ApiKeyVerifier,
  AttemptLimits,
  type EndedSession,
  type ExternalIssuers,
} from "../../auth/mod.ts";
import { LeaderCalls, LeaderConnection, LeaderRooms } from "../../cluster/mod.ts";
import { ServiceError } from "../../errors.ts";
import { IsolateHost, type ServedApp } from "../../functions/host/mod.ts";
import { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { FollowedRooms } from "../../presence/mod.ts";
import { FollowedStreams } from "../../streams/mod.ts";
import { httpCalls, Hub } from "../../sync/mod.ts";
import { loadSecret } from "../data/secret.ts";
import { requestPath } from "../../kit/http_request.ts";
import { Hono } from "hono";
import type { Backend, BackendOptions } from "../backend.ts";
import { LeaderProxy } from "../forwarding/leader_proxy.ts";
import { followedRoutes } from "../features/streams.ts";
import { acceptSocket, addressOfRequests } from "../http/requests.ts";
import { isApi } from "../http/request_gate.ts";
import { apiHeaders } from "../http/app_routes.ts";
import { isolateEntry } from "../isolate_address.ts";
import { workerLimits } from "../limits.ts";
import type { WorkerBoot } from "../workers/boot.ts";
import { NewestTsReader } from "../workers/newest_ts_file.ts";
import { RunReporter } from "./run_reporter.ts";

type TokenCheck = Awaited<ReturnType<ExternalIssuers["verify"]>>;

/** Why a worker must end. */
export interface WorkerEnd {
  readonly why: string | null;
  /** Whether the leader stops. */
  readonly orderly: boolean;
}

export interface WorkerBackendOptions extends Pick<BackendOptions, "socketsMax" | "log"> {
  readonly serveFrontend: NonNullable<BackendOptions["serveFrontend"]>;
  /** Resolves when the port is open. The worker then reports that it serves. */
  readonly portOpen: Promise<void>;
  /** Called when the worker must end. Later calls have no effect. */
  readonly onEnd: (end: WorkerEnd) => void;
}

export async function startWorkerBackend(
  boot: WorkerBoot,
  { socketsMax, serveFrontend, portOpen, onEnd, log }: WorkerBackendOptions,
): Promise<Backend> {
  const { name, config, passed, link: { path, secret } } = boot;
  await using opened = new AsyncDisposableStack();
  let now = () => 0;
  const calls = new LeaderCalls({ ts: () => now() });
  opened.defer(() => calls.close());
  const conn = await Deno.connect({ transport: "unix", path });
  const link = await LeaderConnection.open({ conn, secret, hello: { name, commits: true }, calls });
  opened.defer(() => link.close());
  link.ended.then(({ detail }) => onEnd({ why: detail, orderly: false }));
  const report = opened.use(new RunReporter(link, { log, telemetry: config.telemetry }));
  const { ts, app } = link.welcome;
  if (app === null) throw new TypeError("The leader did not send its app version");
  const host = opened.use(
    await IsolateHost.start({
      dataDir: config.dataDir,
      code: { version: app.version },
      commitSource: { from: "leader", leader: calls, app, ts },
      env: {},
      cores: config.cores,
      memory: config.memory,
      timeouts: config.timeouts,
      entry: isolateEntry,
      settings: boot.settings,
      observer: report,
      log,
    }),
  );
  now = () => host.ts;
  const newest = opened.use(new NewestTsReader(config.dataDir));
  const leaderRooms = new LeaderRooms();
  const rooms = opened.use(new FollowedRooms(leaderRooms));
  const { authenticator, hub } = await wire(boot, { host, calls, newest, report, rooms, socketsMax, log });
  link.listen({
    ...leaderEvents({ host, authenticator, log, stop: (why, orderly) => onEnd({ why, orderly }) }),
    rooms: leaderRooms.use(link),
  });
  const figures = setInterval(() => link.figures(hub.load), workerLimits.figuresMs);
  opened.defer(() => clearInterval(figures));
  // A deployed version has a frontend of its own. Without it, the version is still served.
  const openFrontend = async () => {
    try {
      await serveFrontend(host.code.version?.staticDir ?? config.staticDir);
    } catch (error) {
      log("error", "Cannot serve the frontend of the deployed version", { code: "deploy", error });
      await serveFrontend(null);
    }
  };
  await openFrontend();
  host.onReload(() => void openFrontend());
  const leader = opened.use(new LeaderProxy({ path: passed.path, log }));
  void portOpen.then(() => link.ready());
  const addressOf = addressOfRequests(config.trustedProxies);
  const http = httpCalls({
    hub,
    host,
    authenticator,
    dev: config.dev,
    headers: apiHeaders,
    addressOf,
    ...(report.spans && { spans: report.spans }),
    log,
  });
  const followed = opened.use(new FollowedStreams((path, signal) => leader.request(path, signal)));
  const streams = followedRoutes(followed);
  const resources = opened.move();
  /** Responses of the leader, which counts them itself. */
  const forwarded = new WeakSet<object>();
  return {
    get ts() {
      return host.ts;
    },
    setupLink: null,
    http: {
      routes: new Hono(),
      completeRoutes: new Hono().route(streams.at, streams.app),
      appRoutes: () => null,
      metrics: {
        requests: {
          count(path, answer) {
            if (!forwarded.has(answer)) report.answered(path ?? "/", answer);
            return answer;
          },
        },
      },
    },
    respond(request, info, route) {
      const direct = http.handleDirectly(request, info);
      if (direct !== null) return direct;
      if (isAnsweredHere(request, host)) return route();
      const answer = leader.forward(request, info);
      forwarded.add(answer);
      return answer;
    },
    acceptSocket: (request, below) => acceptSocket({ hub, addressOf }, request, below),
    closeSockets() {
      followed.endReaders();
      return hub.shutdown();
    },
    reload: () => Promise.resolve({ ok: false, message: "The server that writes loads the code" }),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** Whether a worker answers a request that calls no function: sockets, pages of the service and static files. */
function isAnsweredHere(request: Request, host: Pick<IsolateHost, "routes">): boolean {
  const path = requestPath(request);
  if (isApi(path)) return path === "/api/sync" || path.startsWith("/api/streams/");
  if (path === "/_" || path.startsWith("/_/")) return true;
  return path !== "/metrics" && host.routes.find(request.method, path) === null;
}

async function wire(
  { config: { dataDir, dev, memoryBytes } }: WorkerBoot,
  { host, calls, newest, report, rooms, socketsMax, log }: {
    readonly host: IsolateHost;
    readonly calls: LeaderCalls;
    readonly newest: NewestTsReader;
    readonly report: RunReporter;
    readonly rooms: FollowedRooms;
    readonly socketsMax: number;
    readonly log: Log;
  },
): Promise<{ readonly authenticator: AccountAuthenticator; readonly hub: Hub }> {
  const { keys } = await loadSecret(dataDir);
  const systemCalls = new SystemCalls({
    mutate: (call) => host.mutate(call),
    query: (call) => hub.query(call),
  });
  const authenticator = new AccountAuthenticator({
    accessTokens: new AccessTokens(keys.accessTokens),
    external: issuersOf(calls),
    apiKeys: new ApiKeyVerifier({
      calls: systemCalls,
      secret: keys.tokenHashes,
      limits: new AttemptLimits(Date.now),
      now: Date.now,
      log,
      readOnly: false,
    }),
    calls: systemCalls,
    now: Date.now,
  });
  // Accounts receive commits first: a session that has ended sends nothing more.
  host.onCommits((entries) => authenticator.applyCommits(entries));
  host.onReload(() => {
    authenticator.recheck().catch((error) => log("error", "Cannot look up sessions again", { error }));
  });
  const hub: Hub = new Hub({
    host,
    authenticator,
    rooms,
    dev,
    log,
    newest: {
      get ts() {
        return newest.ts;
      },
      waitFor: (ts) => host.commits.published(ts),
    },
    memoryBytes,
    socketsMax,
    onCacheHit: (path) => report.cacheHit(path),
    ...(report.spans && { spans: report.spans }),
  });
  host.serveQueries((call) => hub.query(call));
  return { authenticator, hub };
}

/** The leader verifies external tokens and reports those that end. */
function issuersOf(calls: LeaderCalls): ExternalIssuers {
  return {
    async verify(token) {
      const verification = await calls.verify(token);
      if (verification === null) {
        throw new ServiceError("unavailable", "The token cannot be checked now");
      }
      return verification as TokenCheck;
    },
    applyCommits: () => [],
    recheck: () => Promise.resolve([]),
  };
}

function leaderEvents(
  { host, authenticator, log, stop }: {
    readonly host: IsolateHost;
    readonly authenticator: AccountAuthenticator;
    readonly log: Log;
    readonly stop: (why: string, orderly: boolean) => void;
  },
): Parameters<LeaderConnection["listen"]>[0] {
  return {
    commits: (entries, ts) => host.commits.group(entries, ts),
    missed: (ts) => host.commits.gap(ts),
    ended: (ended) => authenticator.endedElsewhere(ended as EndedSession),
    hold: () => host.swaps.holdQueries(),
    release(app: ServedApp | null) {
      host.swaps.follow(app).catch((error) => {
        log("error", "Cannot load the deployed functions", { error });
        stop("cannot load the functions", false);
      });
    },
    stop: () => stop("the server stops", true),
  };
}
