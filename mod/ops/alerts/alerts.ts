/** Checks the issues once a minute and reports those that begin and end. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import { adminMainAction, type MainAction, unauditedAdminAction } from "../../functions/main_actions.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { createApi } from "../../protocol/api_reference.ts";
import { alertLimits } from "../limits.ts";
import {
  type Alert,
  type AlertChannel,
  type AlertItem,
  type AlertMail,
  mailChannel,
  type Webhook,
  webhookChannel,
} from "./channels.ts";
import type { AlertRow, alertSystemFunctions } from "./isolate_functions.ts";
import type { AlertThresholds, Issue } from "./issues.ts";
import { isQuiet, type QuietHours } from "./quiet_hours.ts";

const system = createApi<{ "_system/alerts": typeof alertSystemFunctions }>().internal._system.alerts;

export interface AlertsConfig {
  /** Recipients of mail. */
  readonly mail: readonly string[];
  readonly webhooks: readonly Webhook[];
  /** `null`: alerts are sent at any time. */
  readonly quietHours: QuietHours | null;
  readonly thresholds: AlertThresholds;
}

export interface AlertsOptions {
  readonly calls: Pick<SystemCalls, "queryInWriter" | "mutate">;
  readonly findIssues: (thresholds: AlertThresholds) => Promise<readonly Issue[]>;
  /** Makes one attempt. Rejects with the reason. */
  readonly sendMail: (mail: AlertMail) => Promise<void>;
  /** Address of the dashboard, ending with a slash. */
  readonly dashboardUrl: string;
  readonly config: AlertsConfig;
  /** Name of the app. */
  readonly app: string;
  /** Whether no other server of a cluster sends alerts. */
  readonly mayCheck: () => boolean;
  readonly log: Log;
  readonly now?: () => number;
}

/** A failed delivery that is repeated. */
interface Retry {
  readonly channel: AlertChannel;
  readonly alert: Alert;
  readonly failures: number;
  readonly dueAt: number;
}

/** Disposing of it aborts deliveries. */
export class Alerts implements AsyncDisposable {
  readonly #options: AlertsOptions;
  readonly #now: () => number;
  #config: AlertsConfig;
  #app: string;
  #channels: readonly AlertChannel[];
  /** Consecutive checks with an issue, negative for those without it, by key. */
  #streaks: ReadonlyMap<string, number> = new Map();
  /** Changes of rows that could not be stored yet: the disk may be full. Reported texts by key, and ended keys. */
  readonly #unsaved = { reported: new Map<string, string>(), ended: new Set<string>() };
  #retries: readonly Retry[] = [];
  #checking: Promise<void> | null = null;
  #found: { readonly at: number; readonly issues: Promise<readonly Issue[]> } | null = null;
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #stopping = new AbortController();

  constructor(options: AlertsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#config = options.config;
    this.#app = options.app;
    this.#channels = this.#channelsOf(options.config);
  }

  /** Replaces the configuration. Pending retries are dropped. */
  configure(config: AlertsConfig, { app }: { readonly app: string }): void {
    this.#config = config;
    this.#app = app;
    this.#channels = this.#channelsOf(config);
    this.#retries = [];
    this.#found = null;
  }

  start(): void {
    this.#timer = setInterval(() => void this.check(), alertLimits.checkMs);
    Deno.unrefTimer(this.#timer);
  }

  /** Reports issues that began or ended. Never rejects. */
  check(): Promise<void> {
    return this.#checking ??= this.#check().catch((error) => {
      this.#options.log("warn", "Cannot check for alerts", { error });
    }).finally(() => this.#checking = null);
  }

  /** Returns the current issues, computed once for concurrent administrators. */
  async issues(): Promise<readonly Issue[]> {
    const now = this.#now();
    if (this.#found === null || now - this.#found.at >= alertLimits.issuesKnownMs) {
      this.#found = { at: now, issues: this.#options.findIssues(this.#config.thresholds) };
    }
    return await this.#found.issues;
  }

  /** Sends a test alert to each recipient. Throws `no_recipients`. */
  async test(): Promise<{ readonly channel: string; readonly error: string | null }[]> {
    if (this.#channels.length === 0) {
      throw new UserError("no_recipients", "Alerts have no recipients. Save an address or a webhook first");
    }
    const item = {
      status: "test",
      severity: "warning",
      key: "test",
      text: "This is a test alert sent by an administrator.",
      url: this.#urlOf("settings/alerts"),
    } as const;
    const alert = this.#alertOf([item]);
    return await Promise.all(this.#channels.map(async (channel) => ({
      channel: channel.name,
      error: await channel.send(alert, this.#stopping.signal).then(() => null, reasonOf),
    })));
  }

  get actions(): ReadonlyMap<string, MainAction> {
    return new Map([
      ["_admin/alerts:issues", unauditedAdminAction(z.strictObject({}), () => this.issues())],
      ["_admin/alerts:test", adminMainAction(z.strictObject({}), () => this.test())],
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#checking;
  }

  async #check(): Promise<void> {
    const { calls, findIssues, mayCheck } = this.#options;
    if (!mayCheck()) {
      this.#streaks = new Map();
      return;
    }
    const { quietHours } = this.#config;
    const isSilent = quietHours !== null && isQuiet(quietHours, this.#now());
    if (!isSilent) await this.#retry();
    const issues = await findIssues(this.#config.thresholds);
    const rows = await calls.queryInWriter(system.rows, {});
    this.#streaks = countStreaks(this.#streaks, { issues, rows });
    const now = this.#now();
    const rowsByKey = new Map(rows.map((row) => [row.key, row]));
    const began = isSilent || this.#channels.length === 0
      ? []
      : issues.filter(({ key }) => this.#streak(key) >= CONFIRMED && this.#isNews(key, rowsByKey.get(key)))
        .slice(0, Math.max(0, alertLimits.rowsMax - rows.length - this.#unsaved.reported.size));
    const ended = rows.filter((row) => this.#streak(row.key) <= -CONFIRMED && this.#isOver(row));
    const recovered = ended.filter(({ reportedAt, mutedUntil = 0 }) =>
      reportedAt !== undefined && mutedUntil <= now
    );
    const items = [...began.map((issue) => this.#itemOf(issue)), ...recovered.map((row) => this.#endOf(row))];
    if (!isSilent && items.length > 0) await this.#send(this.#alertOf(items));
    // Deliveries may have been aborted. The next process reports again.
    if (this.#stopping.signal.aborted) return;
    for (const { key, text } of began) this.#unsaved.reported.set(key, text);
    // In quiet hours the row is kept, so that the recovery is reported afterwards.
    for (const row of ended) if (!isSilent || !recovered.includes(row)) this.#unsaved.ended.add(row.key);
    await this.#save();
  }

  #streak(key: string): number {
    return this.#streaks.get(key) ?? 0;
  }

  /** Whether an issue was neither reported nor acknowledged nor muted. */
  #isNews(key: string, row: AlertRow | undefined): boolean {
    if (this.#unsaved.reported.has(key)) return false;
    return row?.reportedAt === undefined && row?.acknowledgedBy === undefined &&
      (row?.mutedUntil ?? 0) <= this.#now();
  }

  /** Whether the row of an issue that ended has to be changed. */
  #isOver({ key, reportedAt, acknowledgedBy, mutedUntil = 0 }: AlertRow): boolean {
    if (this.#unsaved.ended.has(key)) return false;
    return reportedAt !== undefined || acknowledgedBy !== undefined || mutedUntil <= this.#now();
  }

  async #save(): Promise<void> {
    const { reported, ended } = this.#unsaved;
    if (reported.size + ended.size === 0) return;
    await this.#options.calls.mutate(system.record, {
      reported: [...reported].map(([key, text]) => ({ key, text })),
      ended: [...ended],
    });
    reported.clear();
    ended.clear();
  }

  async #send(alert: Alert): Promise<void> {
    await Promise.all(this.#channels.map((channel) => this.#deliver({ channel, alert, failures: 0 })));
  }

  async #retry(): Promise<void> {
    const now = this.#now();
    const due = this.#retries.filter(({ dueAt }) => dueAt <= now);
    this.#retries = this.#retries.filter(({ dueAt }) => dueAt > now);
    await Promise.all(due.map((retry) => this.#deliver(retry)));
  }

  /** Makes one attempt, and plans the next one if it fails. */
  async #deliver({ channel, alert, failures: before }: Omit<Retry, "dueAt">): Promise<void> {
    const { log } = this.#options;
    const fields = { channel: channel.name, issues: alert.items.map(({ key }) => key).join(", ") };
    try {
      await channel.send(alert, this.#stopping.signal);
      log("info", "Alert sent", fields);
    } catch (error) {
      const failures = before + 1;
      const isLast = failures >= alertLimits.attemptsMax || this.#retries.length >= alertLimits.retriesMax;
      log(isLast ? "error" : "warn", isLast ? "Alert not delivered" : "Alert failed, will be retried", {
        ...fields,
        failures,
        reason: reasonOf(error),
      });
      if (isLast) return;
      const dueAt = this.#now() + alertLimits.retryMs * 2 ** before;
      this.#retries = [...this.#retries, { channel, alert, failures, dueAt }];
    }
  }

  #channelsOf({ mail, webhooks }: AlertsConfig): readonly AlertChannel[] {
    const { sendMail } = this.#options;
    return [
      ...mail.map((address) => mailChannel(address, sendMail)),
      ...webhooks.map((webhook) => webhookChannel(webhook)),
    ];
  }

  #alertOf(items: readonly AlertItem[]): Alert {
    return { app: this.#app, at: this.#now(), items };
  }

  #itemOf({ key, tone, text, view }: Issue): AlertItem {
    const severity = tone === "bad" ? "error" : "warning";
    return { status: "active", severity, key, text, url: this.#urlOf(view) };
  }

  #endOf({ key, text }: AlertRow): AlertItem {
    return { status: "recovered", severity: "warning", key, text, url: this.#urlOf("overview") };
  }

  #urlOf(view: string): string {
    return `${this.#options.dashboardUrl}#/${view}`;
  }
}

/** Consecutive checks after which an issue has begun or ended. */
const CONFIRMED = 2;

function countStreaks(
  before: ReadonlyMap<string, number>,
  { issues, rows }: { readonly issues: readonly Issue[]; readonly rows: readonly AlertRow[] },
): ReadonlyMap<string, number> {
  const streaks = new Map<string, number>();
  for (const { key } of rows) streaks.set(key, Math.min(before.get(key) ?? 0, 0) - 1);
  for (const { key } of issues) streaks.set(key, Math.max(before.get(key) ?? 0, 0) + 1);
  return streaks;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
