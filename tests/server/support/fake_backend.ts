/** A backend without isolates, for tests of the layers in front of it. */
import { memoryPlan } from "../../../mod/config/memory.ts";
import { Hono } from "hono";
import type { Backend } from "../../../mod/server/backend.ts";
import type { ReloadResult } from "../../../mod/server/dev/dev_mode.ts";
import type { ServeConfig } from "../../../mod/config/config.ts";
import { defaultThresholds } from "../../../mod/ops/alerts/mod.ts";
import { optionsOf, type ServeOptions } from "../../../mod/config/options.ts";

/** Requests to a {@linkcode FakeBackend}, in order. */
export type BackendEvent = "call" | "socket" | "closeSockets" | "reload" | "dispose";

export class FakeBackend implements Backend {
  readonly events: BackendEvent[] = [];
  readonly routes = new Hono();
  readonly http: Backend["http"] = { routes: this.routes, appRoutes: () => null };
  readonly setupLink = null;
  readonly sockets: WebSocket[] = [];
  ts = 42;
  /** Awaited by a call of `/api/query`. */
  callGate: Promise<void> = Promise.resolve();

  constructor() {
    this.routes.post("/api/query", async (c) => {
      this.events.push("call");
      await this.callGate;
      return c.json({ status: "success", value: 1, logLines: [] });
    });
    this.routes.post("/api/mutation", () => {
      throw new Error("a bug in a handler");
    });
  }

  respond(
    _request: Request,
    _info: Deno.ServeHandlerInfo,
    route: () => Response | Promise<Response>,
  ): Response | Promise<Response> {
    return route();
  }

  acceptSocket(request: Request): Response {
    this.events.push("socket");
    const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: 0 });
    this.sockets.push(socket);
    return response;
  }

  async closeSockets(): Promise<void> {
    this.events.push("closeSockets");
    await Promise.all(this.sockets.map((socket) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      socket.addEventListener("close", () => resolve());
      socket.close(1012);
      return promise;
    }));
  }

  reload(): Promise<ReloadResult> {
    this.events.push("reload");
    return Promise.resolve({ ok: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.events.push("dispose");
    return Promise.resolve();
  }
}

const plan = memoryPlan({ bytes: 1024 ** 3, cores: 2 });

/** A configuration that listens on any free local port. Without spare isolates, whose start takes as long as the server's. */
export function testConfig(changes: Partial<ServeConfig> & Pick<ServeConfig, "dataDir">): ServeConfig {
  return {
    host: "127.0.0.1",
    port: 0,
    functionsDir: "/functions",
    pinned: true,
    deployed: null,
    staticDir: null,
    example: false,
    empty: false,
    memoryBytes: 1024 ** 3,
    memory: { ...plan, isolates: { ...plan.isolates, sparing: true } },
    dev: false,
    takeover: false,
    devFrontendUrl: null,
    typeCheck: true,
    actionNet: null,
    timeouts: { queryMs: 30_000, mutationMs: 5_000 },
    actionEnv: {},
    publicUrl: null,
    publicOpenApi: false,
    allowedHosts: [],
    allowedOrigins: null,
    trustedProxies: [],
    explicitOptions: { values: defaultOptions(), explicit: new Map() },
    accounts: {
      policy: {
        signups: true,
        magicLink: true,
        totp: true,
        passkeys: true,
        deviceMail: true,
        userKeys: [],
        anonymous: false,
        anonymousUserMs: 0,
        requireVerification: false,
      },
      accessTokenMs: 900_000,
      redirectUrls: [],
      smtp: null,
      templatesDir: null,
      mailTexts: {},
      authConfig: null,
      appName: null,
      rateLimits: {},
    },
    follow: null,
    cluster: null,
    clusterRole: null,
    replication: null,
    storage: {
      s3: null,
      uploadBytesMax: 1_000_000,
      privateReads: false,
      keepDeletedMs: 0,
      thumbnailSizes: null,
    },
    backups: null,
    alerts: { mail: [], webhooks: [], quietHours: null, thresholds: defaultThresholds },
    restartExitCode: null,
    workers: 1,
    metrics: null,
    telemetry: null,
    executionLog: null,
    ...changes,
  };
}

export function defaultOptions(): ServeOptions {
  return Object.fromEntries(
    optionsOf("serve").map(([name, spec]) => [name, spec.default]),
  ) as unknown as ServeOptions;
}
