/** What workers need of the server behind its port. */
import type { LeaderOptions } from "../../cluster/mod.ts";
import type { PassedCalls } from "../../functions/host/mod.ts";
import type { WorkerBoot } from "./boot.ts";

export interface LeadingParts
  extends Pick<LeaderOptions, "host" | "admits" | "verify" | "observer" | "onCacheHit" | "onRequests"> {
  /** Calls the listener when credentials end that no commit tells workers of. */
  onEnded(listener: (ended: unknown) => void): void;
  /** What functions of the service have to know, by feature. */
  readonly settings: WorkerBoot["settings"];
  readonly passedCalls: PassedCalls;
}
