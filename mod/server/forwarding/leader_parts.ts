/** Parts of a leader's backend that followers and workers use. */
import { requestPath } from "../../kit/http_request.ts";
import type { LeaderOptions } from "../../cluster/mod.ts";
import type { RunObserver } from "../../functions/host/mod.ts";
import type { Metrics } from "../../ops/metrics/mod.ts";
import type { RunStats } from "../../ops/stats/mod.ts";
import type { RoomHub } from "../../presence/mod.ts";
import type { FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "../features/accounts.ts";

export interface LeaderParts
  extends
    Pick<LeaderOptions, "host" | "admits" | "verify" | "rooms" | "observer" | "onCacheHit" | "onRequests"> {
  /** Calls the listener when credentials expire without a commit. */
  onEnded(listener: (ended: unknown) => void): void;
  /** Settings of the service's functions, by feature. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** The same of this server. */
export function leaderPartsOf(
  { host }: Pick<FeatureContext, "host">,
  { accounts: { authenticator }, presence: { hub }, runStats, metrics, observer, settings }: {
    readonly accounts: Pick<AccountsFeature, "authenticator">;
    readonly presence: { readonly hub: RoomHub | null };
    readonly runStats: RunStats;
    readonly metrics: Metrics | null;
    readonly observer: RunObserver | null;
    readonly settings: LeaderParts["settings"];
  },
): LeaderParts {
  return {
    host,
    admits: (identity) => authenticator.isLive(identity),
    verify: (token) => authenticator.verify(token),
    ...(hub && { rooms: hub }),
    observer,
    onCacheHit: (path) => runStats.cacheHit(path),
    ...(metrics && {
      onRequests: (url, answers) => metrics.requests.answeredElsewhere(requestPath({ url }), answers),
    }),
    // The end of a session is a commit, which workers receive.
    onEnded: (listener) =>
      authenticator.onSessionEnd((ended) => {
        if ("withoutSession" in ended) listener(ended);
      }),
    settings,
  };
}
