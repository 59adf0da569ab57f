/** The configuration of a worker: one line of JSON on its standard input, because it contains a secret. */
import type { ServeConfig } from "../../config/config.ts";
import { memoryPlan } from "../../config/memory.ts";
import type { IsolateMemory } from "../../functions/host/mod.ts";

export interface WorkerBoot {
  /** For logs and figures. */
  readonly name: string;
  /** Address that all workers share. */
  readonly host: string;
  readonly port: number;
  /** Socket on which the leader accepts followers, and the secret that authenticates this one. */
  readonly link: { readonly path: string; readonly secret: string };
  /** Socket on which the leader accepts requests. */
  readonly passed: { readonly path: string };
  /** Settings of the service's functions, by feature. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly config: WorkerConfig;
}

/** Telemetry that a worker reports to the leader, which exports it. */
export interface WorkerTelemetry {
  /** Share of exported traces; `null` if traces are not exported. */
  readonly sample: number | null;
  readonly logs: boolean;
}

const SHARED = [
  "dataDir",
  "dev",
  "publicUrl",
  "allowedHosts",
  "allowedOrigins",
  "trustedProxies",
  "timeouts",
  "staticDir",
  "example",
  "empty",
] as const satisfies readonly (keyof ServeConfig)[];

/** The parts of a configuration that workers need. */
export interface WorkerConfig extends Pick<ServeConfig, typeof SHARED[number]> {
  /** Memory of this worker in bytes. */
  readonly memoryBytes: number;
  readonly memory: IsolateMemory;
  /** Processors per worker, rounded up. */
  readonly cores: number;
  /** `null` without `--otlp-endpoint`. */
  readonly telemetry: WorkerTelemetry | null;
}

/** Processes on one machine share its processors: none runs more busy readers than its share. */
export function coresOf({ workers }: Pick<ServeConfig, "workers">): number {
  return Math.ceil(navigator.hardwareConcurrency / workers);
}

export function workerConfig(config: ServeConfig): WorkerConfig {
  const shared = Object.fromEntries(SHARED.map((name) => [name, config[name]]));
  const memoryBytes = Math.floor(config.memoryBytes / config.workers);
  const cores = coresOf(config);
  const { isolates: memory } = memoryPlan({ bytes: memoryBytes, cores });
  const telemetry = config.telemetry && {
    sample: config.telemetry.signals.includes("traces") ? config.telemetry.sample : null,
    logs: config.telemetry.signals.includes("logs"),
  };
  return { ...shared as Pick<ServeConfig, typeof SHARED[number]>, memoryBytes, memory, cores, telemetry };
}
