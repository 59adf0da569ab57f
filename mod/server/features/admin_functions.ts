/** System functions for administrators: settings, audit log, long-running work, table sizes. */
import type { ActionDoor } from "../../functions/main_actions.ts";
import { SystemCalls } from "../../functions/system_calls.ts";
import type { SecretKeys } from "../../auth/mod.ts";
import { type BackupsConfig, isFollower, type ServeConfig } from "../../config/config.ts";
import { checkSetting, liveConfig, settingSpecs } from "../../config/settings.ts";
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
import { applySettings, type SettableParts } from "./apply_settings.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";

export interface AdminFunctionsFeature extends Feature {
  readonly audit: AuditLog;
  readonly sizes: TableSizes;
  readonly work: AdminWork;
  /** Reads the settings before the first request. */
  load(): Promise<void>;
  /** Decides who may run actions for administrators, and audits them. */
  doorOf(authenticator: Pick<AccountsFeature["authenticator"], "isLiveAdmin">): ActionDoor;
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
    leaderOnly: true,
    audit,
    sizes,
    work,
    load: async () => await settings?.load(),
    doorOf: (authenticator) => ({
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

/** Settings of this feature for isolates. */
export function isolateSettingsOf(
  { explicitOptions }: ServeConfig,
  keys: SecretKeys,
): Record<string, unknown> {
  if (explicitOptions === null) return {};
  return { [settingsFeature]: { specs: settingSpecs(explicitOptions), key: keyName(keys.settings) } };
}
