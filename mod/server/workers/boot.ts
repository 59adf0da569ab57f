/** What a worker is told when it is started, on its standard input: one line of JSON, which names a secret. */
import type { ServeConfig } from "../../config/config.ts";
import { memoryPlan } from "../../config/memory.ts";
import type { IsolateMemory } from "../../functions/host/mod.ts";

export interface WorkerBoot {
  /** In the log, and in figures. */
  readonly name: string;
  /** Where it listens, beside the others. */
  readonly host: string;
  readonly port: number;
  /** The socket on which the leader takes followers, and what shows it that this is one. */
  readonly link: { readonly path: string; readonly secret: string };
  /** The socket on which the leader takes requests. */
  readonly passed: { readonly path: string };
  /** What functions of the service have to know, by feature. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly config: WorkerConfig;
}

/** What of a configuration concerns a worker. */
export type WorkerConfig =
  & Pick<
    ServeConfig,
    | "dataDir"
    | "dev"
    | "publicUrl"
    | "allowedHosts"
    | "allowedOrigins"
    | "trustedProxies"
    | "timeouts"
    | "staticDir"
    | "example"
  >
  & {
    /** Its share. */
    readonly memoryBytes: number;
    /** What its isolates may use of that. */
    readonly memory: IsolateMemory;
    /** Processors that are its share, rounded up. */
    readonly cores: number;
  };

/** Of processes that share a machine none keeps more readers busy than its part of the processors. */
export function coresOf({ workers }: Pick<ServeConfig, "workers">): number {
  return Math.ceil(navigator.hardwareConcurrency / workers);
}

export function workerConfig(config: ServeConfig): WorkerConfig {
  const {
    dataDir,
    dev,
    publicUrl,
    allowedHosts,
    allowedOrigins,
    trustedProxies,
    timeouts,
    staticDir,
    example,
  } = config;
  const memoryBytes = Math.floor(config.memoryBytes / config.workers);
  return {
    dataDir,
    dev,
    publicUrl,
    allowedHosts,
    allowedOrigins,
    trustedProxies,
    timeouts,
    staticDir,
    example,
    memoryBytes,
    memory: memoryPlan({ bytes: memoryBytes, cores: coresOf(config) }).isolates,
    cores: coresOf(config),
  };
}
