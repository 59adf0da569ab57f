/** System functions for administrators, and the effect of settings on the running server. */
import type { SecretKeys } from "../../auth/mod.ts";
import {
  type BackupsConfig,
  type ExplicitOptions,
  isFollower,
  type ServeConfig,
} from "../../config/config.ts";
import { checkSetting, type LiveConfig, liveConfig, settingSpecs } from "../../config/settings.ts";
import type { ActionAccess } from "../../functions/main_actions.ts";
import { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import {
  adminActions,
  AdminWork,
  AUDIT_CLEAN_PATH,
  AuditLog,
  keyName,
  Settings,
  settingsFeature,
  TableSizes,
} from "../../ops/admin/mod.ts";
import { serviceCron } from "../../scheduler/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";

/** Parts that settings change. */
export interface SettableParts {
  readonly accounts: Pick<AccountsFeature, "configure" | "configureExternalAuth">;
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
    ["sign-in with others", () => accounts.configureExternalAuth(live.accounts)],
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

export interface AdminFunctionsFeature extends Feature {
  readonly audit: AuditLog;
  readonly sizes: TableSizes;
  readonly work: AdminWork;
  /** Reads the settings before the first request. */
  load(): Promise<void>;
  /** Decides who may run actions for administrators, and audits them. */
  actionAccess(authenticator: Pick<AccountsFeature["authenticator"], "isLiveAdmin">): ActionAccess;
}

/** When the server stops, long-running work ends after its current step. */
export function startAdminFunctions(
  { config, keys, host, port, log }: FeatureContext,
  parts: Omit<SettableParts, "log"> & {
    readonly accounts: AccountsFeature;
    readonly backups: { tryOut(config: BackupsConfig | null): Promise<void> };
  },
): AdminFunctionsFeature {
  const { explicitOptions } = config;
  const calls = new SystemCalls(port);
  const audit = new AuditLog({ calls, log });
  const work = new AdminWork({ calls, now: Date.now, log });
  const sizes = new TableSizes({ calls, now: Date.now });
  const settings = explicitOptions === null ? null : new Settings({
    calls,
    key: keys.settings,
    specs: settingSpecs(explicitOptions),
    checkOne: checkSetting,
    checkAll: async (settings) => {
      const live = liveConfig(explicitOptions, settings);
      await parts.accounts.tryOut(live.accounts);
      await parts.backups.tryOut(live.backups);
    },
    log,
  });
  if (explicitOptions !== null) {
    settings?.onChange((settings) => applySettings(settings, explicitOptions, { ...parts, log }));
  }
  const { sendTestMail, previewMail } = parts.accounts;
  return {
    audit,
    sizes,
    work,
    load: async () => await settings?.load(),
    actionAccess: (authenticator) => ({
      admits: (identity) => authenticator.isLiveAdmin(identity),
      notes: (call, outcome) => audit.recordAction(call, outcome),
    }),
    actions: new Map([
      ...adminActions({ host, calls, work, sizes, settings, sendTestMail, previewMail }),
      ...audit.actions,
    ]),
    crons: [
      serviceCron(
        "svc-clean-audit",
        { kind: "expression", expression: "41 4 * * *" },
        { path: AUDIT_CLEAN_PATH, kind: "action" },
      ),
    ],
    applyCommits: (entries) => settings?.applyCommits(entries),
    reload: () =>
      void settings?.load().catch((error) => log("error", "Cannot reload the settings", { error })),
    async start() {
      if (!isFollower(config)) await work.start();
    },
    stop: () => work[Symbol.asyncDispose](),
  };
}

export function isolateSettingsOf(
  { explicitOptions }: ServeConfig,
  keys: SecretKeys,
): Record<string, unknown> {
  if (explicitOptions === null) return {};
  return { [settingsFeature]: { specs: settingSpecs(explicitOptions), key: keyName(keys.settings) } };
}
