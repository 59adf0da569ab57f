/** System functions for administrators, and the effect of settings on the running server. */
import type { SecretKeys } from "../../auth/mod.ts";
import {
  type BackupsConfig,
  type ExplicitOptions,
  isFollower,
  type ServeConfig,
} from "../../config/config.ts";
import {
  checkSetting,
  liveBucket,
  type LiveConfig,
  liveConfig,
  settingSpecs,
} from "../../config/settings.ts";
import { OptionValueError } from "../../config/option_types.ts";
import { StartError } from "../../config/start_error.ts";
import { ServiceError, UserError } from "../../errors.ts";
import type { ActionAccess } from "../../functions/main_actions.ts";
import { SystemCalls } from "../../functions/system_calls.ts";
import { probeLocation, type ProbeReport } from "../../kit/locations/location_probe.ts";
import type { BucketLocation } from "../../kit/locations/object_store.ts";
import type { Log } from "../../kit/log.ts";
import {
  adminActions,
  AdminWork,
  AUDIT_CLEAN_PATH,
  AuditLog,
  consoleAction,
  documentHistoryAction,
  keyName,
  Settings,
  settingsFeature,
  TableSizes,
} from "../../ops/admin/mod.ts";
import { opsLimits } from "../../ops/limits.ts";
import type { ExecutionLog } from "../../ops/log/mod.ts";
import { targetProbe } from "../../ops/replication/mod.ts";
import { serviceCron } from "../../scheduler/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import { type AccountsFeature, appNameOf } from "./accounts.ts";
import type { AlertsFeature } from "./integrations/alerts.ts";
import type { ReplicationFeature } from "./replication.ts";

/** Parts that settings change. */
export interface SettableParts {
  readonly accounts: Pick<AccountsFeature, "configure" | "configureExternalAuth">;
  readonly backups: { configure(config: BackupsConfig | null): Promise<void> };
  readonly alerts: Pick<AlertsFeature, "configure">;
  /** `null` without an execution log. */
  readonly executionLog: { configure(settings: NonNullable<LiveConfig["executionLog"]>): void } | null;
  /** Returns the name of the app. */
  readonly appNameOf: (accounts: Pick<LiveConfig["accounts"], "appName">) => string;
  readonly log: Log;
}

/** A part whose settings cannot be applied stays unchanged, and the error is logged. */
export async function applySettings(
  settings: ReadonlyMap<string, string>,
  given: ExplicitOptions,
  { accounts, alerts, appNameOf, backups, executionLog, log }: SettableParts,
): Promise<void> {
  const live = liveConfig(given, settings);
  const parts = [
    ["accounts", () => accounts.configure(live.accounts)],
    ["sign-in with others", () => accounts.configureExternalAuth(live.accounts)],
    ["backups", () => backups.configure(live.backups)],
    ["alerts", () => alerts.configure(live.alerts, { app: appNameOf(live.accounts) })],
    ["execution log", () => {
      if (live.executionLog !== null) executionLog?.configure(live.executionLog);
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
  actionAccess(authenticator: Pick<AccountsFeature["authenticator"], "adminRole">): ActionAccess;
}

/** When the server stops, long-running work ends after its current step. */
export function startAdminFunctions(
  context: FeatureContext,
  parts: Omit<SettableParts, "log" | "appNameOf"> & {
    readonly accounts: AccountsFeature;
    readonly backups: { tryOut(config: BackupsConfig | null): Promise<void> };
    readonly executionLog: ExecutionLog | null;
    readonly replication: Pick<ReplicationFeature, "replication">;
  },
): AdminFunctionsFeature {
  const { config, keys, host, port, log } = context;
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
    settings?.onChange((settings) =>
      applySettings(settings, explicitOptions, {
        ...parts,
        appNameOf: (accounts) => appNameOf(accounts, context),
        log,
      })
    );
  }
  const { sendTestMail, previewMail, providers } = parts.accounts;
  const testProvider = oneAtATime(parts.accounts.testProvider);
  const testBucket = oneAtATime((location: string): Promise<ProbeReport> =>
    probeLocation(targetProbe({ kind: "bucket", bucket: bucketOf(location) }), {
      stepMs: opsLimits.placeStepMs,
    })
  );
  function bucketOf(location: string): BucketLocation {
    if (explicitOptions === null || settings === null) throw new ServiceError("not_found");
    try {
      return liveBucket(explicitOptions, settings.texts, location);
    } catch (error) {
      if (!(error instanceof OptionValueError || error instanceof StartError)) throw error;
      throw new UserError("invalid_setting", error.message, { name: null });
    }
  }
  return {
    audit,
    sizes,
    work,
    load: async () => await settings?.load(),
    actionAccess: (authenticator) => ({
      roleOf: (identity) => authenticator.adminRole(identity),
      notes: (call, outcome) => audit.recordAction(call, outcome),
    }),
    actions: new Map([
      ...adminActions({
        ...{ host, calls, work, sizes, settings },
        ...{ sendTestMail, previewMail, providers, testProvider, testBucket },
      }),
      ...audit.actions,
      [
        "_admin/functions:console",
        consoleAction({ run: (source, identity) => host.swaps.adHoc.run(source, identity), calls, audit }),
      ],
      [
        "_admin/data:history",
        documentHistoryAction({
          calls,
          read: () => parts.replication.replication?.history ?? null,
          log: parts.executionLog,
        }),
      ],
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

/** Tests contact other servers, so only one runs at a time. */
function oneAtATime<Argument, Result>(
  test: (argument: Argument) => Promise<Result>,
): (argument: Argument) => Promise<Result> {
  let running = false;
  return async (argument) => {
    if (running) throw new ServiceError("overloaded", "Such a test is already running. Try again later.");
    running = true;
    try {
      return await test(argument);
    } finally {
      running = false;
    }
  };
}

export function isolateSettingsOf(
  { explicitOptions }: ServeConfig,
  keys: SecretKeys,
): Record<string, unknown> {
  if (explicitOptions === null) return {};
  return { [settingsFeature]: { specs: settingSpecs(explicitOptions), key: keyName(keys.settings) } };
}
