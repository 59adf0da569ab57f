/** Options of a server besides its configuration. */
import type { ServeConfig } from "../config/config.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { Backend, BackendOptions } from "./backend.ts";
import type { NativeSockets } from "./net/native_sockets.ts";

/** Starts the backend; tests pass their own. */
export type StartBackend = (config: ServeConfig, surroundings: BackendOptions) => Promise<Backend>;

export interface ServerOptions {
  readonly config: ServeConfig;
  readonly log: Log;
  readonly startBackend: StartBackend;
  /** System calls on sockets; without them idle connections stay open. */
  readonly native?: NativeSockets | null;
  /** Time that running calls get to finish when the server stops, in milliseconds. */
  readonly drainMs?: number;
  /** Called when an administrator requests a restart. The caller stops the server. */
  readonly onRestart?: () => void;
  /** For tests. */
  readonly clock?: Clock;
}
