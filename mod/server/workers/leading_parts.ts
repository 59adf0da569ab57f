/** What workers need of the server behind its port. */
import { requestPath } from "../../kit/request_path.ts";
import type { LeaderOptions } from "../../cluster/mod.ts";
import type { PassedCalls, RunObserver } from "../../functions/host/mod.ts";
import type { Metrics } from "../../ops/metrics/mod.ts";
import type { RunStats } from "../../ops/stats/mod.ts";
import type { FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "../features/accounts.ts";
import type { WorkerBoot } from "./boot.ts";

export interface LeadingParts
  extends Pick<LeaderOptions, "host" | "admits" | "verify" | "observer" | "onCacheHit" | "onRequests"> {
  /** Calls the listener when credentials end that no commit tells workers of. */
  onEnded(listener: (ended: unknown) => void): void;
  /** What functions of the service have to know, by feature. */
  readonly settings: WorkerBoot["settings"];
  readonly passedCalls: PassedCalls;
}

/** The same of this server. */
export function leadingParts(
  { host, port }: Pick<FeatureContext, "host" | "port">,
  { accounts: { authenticator }, runStats, metrics, observer, settings }: {
    readonly accounts: Pick<AccountsFeature, "authenticator">;
    readonly runStats: RunStats;
    readonly metrics: Metrics | null;
    readonly observer: RunObserver | null;
    readonly settings: WorkerBoot["settings"];
  },
): LeadingParts {
  return {
    host,
    admits: (identity) => authenticator.isLive(identity),
    verify: (token) => authenticator.verify(token),
    observer,
    onCacheHit: (path) => runStats.cacheHit(path),
    ...(metrics && {
      onRequests: (url, answers) => metrics.requests.answeredElsewhere(requestPath({ url }), answers),
    }),
    // Ends of sessions follow from commits, which workers are told of.
    onEnded: (listener) =>
      authenticator.onSessionEnd((ended) => {
        if ("withoutSession" in ended) listener(ended);
      }),
    settings,
    passedCalls: port,
  };
}
