/** The backend of a worker: its own readers, sockets and sign-in state. Writes go to the leader. */
import {
  AccessTokens,
  AccountAuthenticator,
  type EndedSession,
  type ExternalIssuers,
} from "../../auth/mod.ts";
import { LeaderCalls, LeaderConnection } from "../../cluster/mod.ts";
import { ServiceError } from "../../errors.ts";
import { IsolateHost, type ServedApp } from "../../functions/host/mod.ts";
import { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { type HttpCalls, httpCalls, Hub } from "../../sync/mod.ts";
import { loadSecret } from "../data/secret.ts";
import { addressOfRequests } from "../http/requests.ts";
import { apiHeaders } from "../http/app_routes.ts";
import { isolateEntry } from "../isolate_address.ts";
import { workerLimits } from "../limits.ts";
import type { WorkerBoot } from "./boot.ts";
import { NewestTsReader } from "./newest_ts_file.ts";
import { RunReporter } from "./run_reporter.ts";

type TokenCheck = Awaited<ReturnType<ExternalIssuers["verify"]>>;

export interface WorkerBackend extends AsyncDisposable {
  readonly host: IsolateHost;
  readonly hub: Hub;
  readonly calls: HttpCalls;
  /** Counts requests that are answered here. */
  readonly report: Pick<RunReporter, "answered">;
  /** Address of the client, taking trusted proxies into account. */
  readonly addressOf: ReturnType<typeof addressOfRequests>;
  /** Reports to the leader that this worker serves. */
  ready(): void;
  /** Resolves with the reason when this worker must end. Never rejects. */
  readonly ended: Promise<{ readonly why: string; readonly orderly: boolean }>;
}

export async function startWorkerBackend(
  boot: WorkerBoot,
  { socketsMax, log }: { readonly socketsMax: number; readonly log: Log },
): Promise<WorkerBackend> {
  const { name, config, link: { path, secret } } = boot;
  await using opened = new AsyncDisposableStack();
  const ended = Promise.withResolvers<{ readonly why: string; readonly orderly: boolean }>();
  let now = () => 0;
  const calls = new LeaderCalls({ ts: () => now() });
  opened.defer(() => calls.close());
  const conn = await Deno.connect({ transport: "unix", path });
  const link = await LeaderConnection.open({ conn, secret, hello: { name, commits: true }, calls });
  opened.defer(() => link.close());
  link.ended.then(({ detail }) => ended.resolve({ why: detail, orderly: false }));
  const report = opened.use(new RunReporter(link, log));
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
  const { authenticator, hub } = await wire(boot, { host, calls, newest, report, socketsMax, log });
  link.listen(
    leaderEvents({ host, authenticator, log, stop: (why, orderly) => ended.resolve({ why, orderly }) }),
  );
  const figures = setInterval(() => link.figures(figuresOf(hub)), workerLimits.figuresMs);
  opened.defer(() => clearInterval(figures));
  const addressOf = addressOfRequests(config.trustedProxies);
  const resources = opened.move();
  return {
    host,
    hub,
    report,
    calls: httpCalls({ hub, host, authenticator, dev: config.dev, headers: apiHeaders, addressOf, log }),
    addressOf,
    ready: () => link.ready(),
    ended: ended.promise,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

async function wire(
  { config: { dataDir, dev, memoryBytes } }: WorkerBoot,
  { host, calls, newest, report, socketsMax, log }: {
    readonly host: IsolateHost;
    readonly calls: LeaderCalls;
    readonly newest: NewestTsReader;
    readonly report: RunReporter;
    readonly socketsMax: number;
    readonly log: Log;
  },
): Promise<{ readonly authenticator: AccountAuthenticator; readonly hub: Hub }> {
  const { keys } = await loadSecret(dataDir);
  const authenticator = new AccountAuthenticator({
    accessTokens: new AccessTokens(keys.accessTokens),
    external: issuersOf(calls),
    calls: new SystemCalls({ mutate: (call) => host.mutate(call), query: (call) => hub.query(call) }),
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

function figuresOf(hub: Hub): Parameters<LeaderConnection["figures"]>[0] {
  return {
    sockets: hub.socketCount,
    subscriptions: hub.subscriptionCount,
    sharedQueries: hub.queryCount,
    transitions: hub.transitionCount,
    refreshBatches: hub.work.refreshBatches,
    refreshBatchesInFlight: hub.work.refreshBatchesInFlight,
    queriesWaiting: hub.work.queriesWaiting,
    callsWaiting: hub.work.callsWaiting,
  };
}
