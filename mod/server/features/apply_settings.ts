/** Applies settings to the running server, part by part. */
import type { BackupsConfig, ExplicitOptions } from "../../config/config.ts";
import { type LiveConfig, liveConfig } from "../../config/settings.ts";
import type { Log } from "../../kit/log.ts";
import type { AccountsFeature } from "./accounts.ts";

/** Parts that settings change. */
export interface SettableParts {
  readonly accounts: Pick<AccountsFeature, "configure" | "configureOthers">;
  readonly backups: { configure(config: BackupsConfig | null): Promise<void> };
  /** `null` without an execution log. */
  readonly executionLog: { retain(retention: NonNullable<LiveConfig["executionLog"]>): void } | null;
  readonly log: Log;
}

/** A part whose settings cannot be applied stays unchanged, and the error is logged. */
export async function applySettings(
  settings: ReadonlyMap<string, string>,
  given: ExplicitOptions,
  { accounts, backups, executionLog, log }: SettableParts,
): Promise<void> {
  const live = liveConfig(given, settings);
  const parts = [
    ["accounts", () => accounts.configure(live.accounts)],
    ["sign-in with others", () => accounts.configureOthers(live.accounts)],
    ["backups", () => backups.configure(live.backups)],
    ["execution log", () => {
      if (live.executionLog !== null) executionLog?.retain(live.executionLog);
    }],
  ] as const;
  for (const [part, configure] of parts) {
    try {
      await configure();
    } catch (error) {
      log("error", "Cannot apply settings", { part, error });
    }
  }
}
