/** The part of a server behind its HTTP face: the isolates and the sockets' hub, wired together. */
import { Hono } from "hono";
import { AdminChannel, type LoadedSecret, runAdminCommand } from "../auth/mod.ts";
import { IsolateHost } from "../functions/host/host.ts";
import { HostWithMainActions } from "../functions/main_actions.ts";
import type { CallPort } from "../functions/system_calls.ts";
import type { Log } from "../kit/log.ts";
import type { Metrics } from "../ops/metrics/mod.ts";
import { cleaningActions, type SchedulerPort } from "../scheduler/mod.ts";
import { httpCalls, Hub } from "../sync/mod.ts";
import { startAccounts } from "./features/accounts.ts";
import { startAdmin } from "./features/admin.ts";
import { type AppRoutes, appRoutes } from "./http/app_routes.ts";
import { type BackupPlace, openBackupPlace, startBackups } from "./features/backups.ts";
import { clientOfRequests } from "./http/client_of.ts";
import type { ServeConfig } from "../config/config.ts";
import { apiHeaders } from "./http/router.ts";
import { openMetrics, wireMetrics } from "./features/metrics.ts";
import { loadSecret } from "./data/secret.ts";
import { startScheduler } from "./features/scheduling.ts";
import { AppError } from "../config/start_error.ts";
import { startStorage, storageSettingsOf } from "./features/storage.ts";
import { upgradeSocket } from "./http/upgrade.ts";

const ISOLATE_ENTRY = new URL("./isolate_entry.ts", import.meta.url);

/** What the HTTP server needs of what is behind it. Disposing of it ends the isolates. */
export interface Backend extends AsyncDisposable {
  /** ts of the newest commit. */
  readonly ts: number;
  /** The routes below `/api`: one-shot function calls, accounts, files, and what administrators do. */
  readonly routes: Hono;
  /** The app's own HTTP routes. */
  readonly appRoutes: AppRoutes;
  /** Routes below `/api` whose answers need no more headers: reads of files, uploads in pieces. */
  readonly completeRoutes?: Hono;
  /** Answers the most frequent requests without a router; `null` for all others. Never rejects. */
  readonly respondAtOnce?: (request: Request) => Response | Promise<Response> | null;
  /** Where the first administrator is created; `null` when there is one. */
  readonly setupLink: string | null;
  /** Counts requests and answers `/metrics`; absent without `--metrics`. */
  readonly metrics?: Pick<Metrics, "requests" | "respond">;
  /** Answers a WebSocket handshake. Throws `ServiceError` when it is not a valid one. */
  acceptSocket(request: Request): Response;
  /** Closes every socket with 1012; resolves when the close frames have left, or after a bounded time. */
  closeSockets(): Promise<void>;
  /** Loads the app's code anew; the old code goes on serving when the new one is broken. */
  reload(): Promise<ReloadResult>;
}

export type ReloadResult = { readonly ok: true } | { readonly ok: false; readonly message: string };

/** What a backend is started in. */
export interface BackendSurroundings {
  readonly log: Log;
  /** Address of the server for a browser on this machine, without a slash at its end. */
  readonly url: string;
  /** Begins an orderly stop that ends in a restart; `null` when nobody would start the server again. */
  readonly restart: (() => void) | null;
}

/** Starts the isolates and the hub. Rejects with an `AppError` when the app cannot be loaded. */
export async function startBackend(
  config: ServeConfig,
  { log, url, restart }: BackendSurroundings,
): Promise<Backend> {
  const secret = await loadSecret(config.dataDir);
  const backupPlace = await openBackupPlace({ config, log });
  const metrics = await openMetrics(config);
  const host = await IsolateHost.start({
    dataDir: config.dataDir,
    functionsDir: config.functionsDir,
    env: config.env,
    actionNet: config.actionNet,
    entry: ISOLATE_ENTRY,
    settings: storageSettingsOf(config, secret.keys),
    ...(metrics && { observer: metrics.runs }),
    log,
  }).catch(async (error) => {
    metrics?.[Symbol.dispose]();
    await backupPlace?.[Symbol.asyncDispose]();
    const reason = error instanceof Error ? error.message : String(error);
    throw new AppError(`The app in "${config.functionsDir}" cannot be served: ${reason}`, { cause: error });
  });
  try {
    return await connect(host, { config, secret, backupPlace, metrics, log, url, restart });
  } catch (error) {
    await backupPlace?.[Symbol.asyncDispose]();
    metrics?.[Symbol.dispose]();
    await host[Symbol.asyncDispose]();
    throw error;
  }
}

async function connect(
  host: IsolateHost,
  { config, secret, backupPlace, metrics, log, url, restart }: BackendSurroundings & {
    readonly config: ServeConfig;
    readonly secret: LoadedSecret;
    readonly backupPlace: BackupPlace | null;
    readonly metrics: Metrics | null;
  },
): Promise<Backend> {
  const port: CallPort = { mutate: (call) => host.mutate(call), query: (call) => hub.query(call) };
  const clientOf = clientOfRequests(config.trustedProxies);
  const newDatabase = host.ts === 0;
  const accounts = await startAccounts({
    config,
    secret,
    log,
    url,
    newDatabase,
    port,
    clientOf,
    ...(metrics && { onAnswer: (operation, status) => metrics.countAuth(operation, status) }),
  });
  const storage = await startStorage({ config, keys: secret.keys, port, clientOf, log });
  // Told first: a session that ended sends nothing more.
  host.onCommits((entries) => accounts.applyCommits(entries));
  host.onReload(() => accounts.recheckSessions());
  host.onCommits((entries) => storage.applyCommits(entries));
  host.onReload(() => storage.recheck());
  const { authenticator } = accounts;
  const schedulerPort: SchedulerPort = {
    mutate: (call) => host.mutate(call),
    query: (call) => hub.query(call),
    act: (call) => callable.act(call),
  };
  const admin = await startAdmin({ dataDir: config.dataDir, port, accounts, log, restart });
  const backups = await startBackups({
    config,
    place: backupPlace,
    make: admin.makeBackup,
    counts: admin.backupCounts,
    log,
  });
  const actions = new Map([
    ...accounts.actions,
    ...cleaningActions({ port: schedulerPort }),
    ...backups?.actions ?? [],
  ]);
  const callable: HostWithMainActions = new HostWithMainActions(
    host,
    actions,
    (call, end) => host.noteEnd(call, end),
  );
  const hub: Hub = new Hub({ host: callable, authenticator, dev: config.dev });
  const calls = httpCalls({ hub, host: callable, authenticator, dev: config.dev, headers: apiHeaders, log });
  host.serveQueries((call) => hub.query(call));
  host.serveCtxActions(storage.actions);
  const adminChannel = await AdminChannel.open({
    dataDir: config.dataDir,
    run: (command) => runAdminCommand(accounts.admins, command),
    log,
  });
  // Beside everything else: what a crash left behind is in nobody's way.
  void storage.sweep();
  const setupLink = await accounts.setupLink();
  const serviceCrons = backups === null ? [] : [backups.cron];
  const scheduler = await startScheduler(host, { port: schedulerPort, serviceCrons, log });
  backups?.start();
  if (metrics !== null) {
    wireMetrics(metrics, { dataDir: config.dataDir, host, hub, traffic: storage.traffic, admin });
  }
  return {
    ...(metrics && { metrics }),
    setupLink,
    get ts() {
      return host.ts;
    },
    routes: new Hono()
      .route("/", calls.routes)
      .route("/api/auth", accounts.routes)
      .route("/api/storage", storage.routes)
      .route("/api/admin", admin.routes),
    completeRoutes: new Hono().route("/api/storage", storage.completeRoutes),
    respondAtOnce: (request) => calls.respondAtOnce(request) ?? storage.readAtOnce(request),
    appRoutes: appRoutes({ host, authenticator, dev: config.dev }),
    acceptSocket(request) {
      const { socket, response } = upgradeSocket(request);
      hub.accept(socket);
      return response;
    },
    closeSockets: () => hub.shutdown(),
    reload: () => host.reload(),
    async [Symbol.asyncDispose]() {
      // Together: the scheduler waits for a scheduled backup, which ends with what makes it.
      await Promise.all([
        scheduler[Symbol.asyncDispose](),
        admin[Symbol.asyncDispose](),
        backups?.[Symbol.asyncDispose](),
      ]);
      await adminChannel[Symbol.asyncDispose]();
      await accounts[Symbol.asyncDispose]();
      await storage[Symbol.asyncDispose]();
      await host[Symbol.asyncDispose]();
      metrics?.[Symbol.dispose]();
    },
  };
}
