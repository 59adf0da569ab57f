/**
 * A worker process: a server that always follows, on the database of the server that started it. It answers sockets, function
 * calls and static files, and forwards everything else to the leader.
 */
import { steadyClock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { httpLimits } from "../../limits.ts";
import { Port } from "../http/port.ts";
import { RequestGate } from "../http/request_gate.ts";
import { openDashboard, StaticFiles } from "../http/static_files.ts";
import type { NativeSockets } from "../net/native_sockets.ts";
import { RequestHandler } from "../request_handler.ts";
import { Serving } from "../serving.ts";
import type { WorkerBoot } from "../workers/boot.ts";
import { startWorkerBackend, type WorkerEnd } from "./worker_backend.ts";

/** Serves until the leader stops the worker or is lost. Returns `true` after an orderly stop. */
export async function runWorker(
  boot: WorkerBoot,
  { native, log }: { readonly native: NativeSockets | null; readonly log: Log },
): Promise<boolean> {
  const { host, config } = boot;
  const ended = Promise.withResolvers<WorkerEnd>();
  const portOpen = Promise.withResolvers<void>();
  const stopping = new AbortController();
  using port: Port = new Port({
    config: { host, port: boot.port },
    native,
    respond: (request, info) => requests.respond(request, info),
    log,
  });
  const serving: Serving = new Serving({
    parts: {
      config: { ...config, restartExitCode: null, devFrontendUrl: null },
      log,
      startBackend: (_role, { socketsMax, serveFrontend = () => Promise.resolve() }) =>
        startWorkerBackend(boot, {
          socketsMax,
          serveFrontend,
          portOpen: portOpen.promise,
          onEnd: ended.resolve,
          log,
        }),
    },
    statics: {
      dashboard: await openDashboard(),
      frontend: config.staticDir === null
        ? null
        : await StaticFiles.open(config.staticDir, { clientRoutes: true }),
    },
    port,
    clock: steadyClock,
    workerFigures: () => [],
    stopping: stopping.signal,
  });
  const requests = new RequestHandler({
    gate: new RequestGate({ ...config, host }, log),
    serving,
    connections: port.connections,
    log,
  });
  await using backend = await serving.start({
    authority: { decide: () => Promise.resolve("following") },
    membership: null,
  });
  port.listen({ shared: true });
  portOpen.resolve();
  port.ended.then((error) => {
    log("error", "This worker ends because its port was closed", { error });
    ended.resolve({ why: null, orderly: false });
  });
  const { why, orderly } = await ended.promise;
  if (why !== null && !orderly) log("warn", "This worker ends because it lost the leader", { reason: why });
  stopping.abort();
  // Clients whose sockets are closed connect to another process.
  const finished = port.finish(httpLimits.drainMs);
  await backend.closeSockets();
  if (orderly) await finished;
  serving.drain();
  return orderly;
}
