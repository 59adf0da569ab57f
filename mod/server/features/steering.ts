/** What administrators see and change through system functions, as this server is put together. */
import { SystemCalls } from "../../functions/system_calls.ts";
import type { SecretKeys } from "../../auth/mod.ts";
import { isFollower, type ServeConfig } from "../../config/config.ts";
import { checkSetting, type LiveConfig, liveConfig, settingSpecs } from "../../config/settings.ts";
import {
  adminActions,
  type AdminActionsOptions,
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

export interface SteeringFeature extends Feature {
  readonly audit: AuditLog;
  readonly sizes: TableSizes;
  /** `null` for a server without settings. */
  readonly settings: Settings | null;
}

/** When the server stops, long work of administrators ends after its step. */
export function startSteering(
  { config, keys, host, port, log }: FeatureContext,
  { sendTestMail, previewMail, tryOut }: Pick<AdminActionsOptions, "sendTestMail" | "previewMail"> & {
    /** Rejects with why settings cannot be used. */
    readonly tryOut: (live: LiveConfig) => Promise<void>;
  },
): SteeringFeature {
  const calls = new SystemCalls(port);
  const audit = new AuditLog({ calls, log });
  const work = new AdminWork({ calls, now: Date.now, log });
  const sizes = new TableSizes({ calls, now: Date.now });
  const settings = config.given === null ? null : new Settings({
    calls,
    key: keys.settings,
    specs: settingSpecs(config.given),
    checkOne: checkSetting,
    checkAll: async (settings) => {
      if (config.given !== null) await tryOut(liveConfig(config.given, settings));
    },
    log,
  });
  return {
    audit,
    sizes,
    settings,
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
      void settings?.load().catch((error) => log("error", "The settings could not be read again", { error })),
    prepare: () => settings?.load(),
    async start() {
      if (!isFollower(config)) await work.start();
    },
    stop: () => work[Symbol.asyncDispose](),
  };
}

/** What isolates are told of settings, by the name of the feature. */
export function settingsOf({ given }: ServeConfig, keys: SecretKeys): Record<string, unknown> {
  if (given === null) return {};
  return { [settingsFeature]: { specs: settingSpecs(given), key: keyName(keys.settings) } };
}
