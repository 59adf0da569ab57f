/** What a server is started with beside its configuration: the log, what is behind the port, what the system can do. */
import type { ServeConfig } from "../config/config.ts";
import type { Log } from "../kit/log.ts";
import type { Backend, BackendSurroundings } from "./backend.ts";
import type { NativeSockets } from "./net/native_sockets.ts";

/** Starts what is behind the HTTP face; tests give one of their own. */
export type StartBackend = (config: ServeConfig, surroundings: BackendSurroundings) => Promise<Backend>;

export interface ServerParts {
  readonly config: ServeConfig;
  readonly log: Log;
  readonly startBackend: StartBackend;
  /** What the system can do about connections; without it those that do nothing stay open. */
  readonly native?: NativeSockets | null;
  /** Time running calls get to finish when the server stops. */
  readonly drainMs?: number;
  /** Called when an administrator asks for a restart: to stop the server is then for the caller to do. */
  readonly onRestart?: () => void;
}
