/** Alerts: conditions, recipients, and formats. */
import assert from "node:assert/strict";
import { parseThresholds, parseWebhooks } from "../../../mod/config/alert_options.ts";
import { UserError } from "../../../mod/errors.ts";
import { SystemCalls } from "../../../mod/functions/system_calls.ts";
import { alertLimits } from "../../../mod/ops/limits.ts";
import { Alerts, type AlertsConfig, type AlertsOptions } from "../../../mod/ops/alerts/alerts.ts";
import type { AlertMail } from "../../../mod/ops/alerts/channels.ts";
import {
  defaultThresholds,
  findIssues,
  type Issue,
  type IssueSources,
} from "../../../mod/ops/alerts/issues.ts";
import type { alertFunctions } from "../../../mod/ops/alerts/isolate_functions.ts";
import { isQuiet, parseQuietHours } from "../../../mod/ops/alerts/quiet_hours.ts";
import { createApi } from "../../../mod/protocol/api_reference.ts";
import { ImportWorld } from "../import/support/import_world.ts";

const issue = (key: string): Issue => ({
  key,
  tone: "bad",
  text: `${key} is broken`,
  act: "View",
  view: "logs",
});
const noon = Date.parse("2026-06-01T12:00:00Z");

interface Row {
  readonly key: string;
  readonly text: string;
  readonly reportedAt?: number;
  readonly acknowledgedBy?: string;
  readonly mutedUntil?: number;
}

/** Alerts with stored rows, a clock, and recipients that record their messages. */
class World {
  now = noon;
  issues: Issue[] = [];
  rows: Row[] = [];
  readonly mails: AlertMail[] = [];
  readonly logged: string[] = [];
  refusing = false;
  isDiskFull = false;
  mayCheck = true;
  readonly alerts: Alerts;

  constructor(config: Partial<AlertsConfig> = {}, calls?: AlertsOptions["calls"]) {
    this.alerts = new Alerts({
      calls: calls ?? {
        queryInWriter: () => Promise.resolve(this.rows as never),
        mutate: (_, args) => this.#record(args as never) as never,
      },
      findIssues: () => Promise.resolve(this.issues),
      sendMail: (mail) => {
        if (this.refusing) return Promise.reject(new Error("mailbox full"));
        this.mails.push(mail);
        return Promise.resolve();
      },
      dashboardUrl: "https://shop.example.com/_/",
      config: {
        mail: ["ops@example.com"],
        webhooks: [],
        quietHours: null,
        thresholds: defaultThresholds,
        ...config,
      },
      app: "Shop",
      mayCheck: () => this.mayCheck,
      log: (level, message) => void this.logged.push(`${level} ${message}`),
      now: () => this.now,
    });
  }

  async check(times = 1): Promise<string[]> {
    const before = this.mails.length;
    for (let i = 0; i < times; i++) {
      await this.alerts.check();
      this.now += alertLimits.checkMs;
    }
    return this.mails.slice(before).map(({ subject }) => subject);
  }

  async #record({ reported, ended }: { reported: Row[]; ended: string[] }): Promise<null> {
    if (this.isDiskFull) throw new Error("disk full");
    this.rows = this.rows.filter(({ key }) =>
      !ended.includes(key) && !reported.some((row) => row.key === key)
    );
    this.rows.push(...reported.map((row) => ({ ...row, reportedAt: this.now })));
    return await Promise.resolve(null);
  }
}

Deno.test("AL1 an issue is reported once when two checks found it, and once when it ended", async () => {
  const world = new World();
  world.issues = [issue("disk")];
  assert.deepEqual(await world.check(), []);
  assert.deepEqual(await world.check(), ["Shop: disk is broken"]);
  assert.match(world.mails[0]?.text ?? "", /https:\/\/shop\.example\.com\/_\/#\/logs/);
  assert.deepEqual(await world.check(5), []);
  world.issues = [];
  assert.deepEqual(await world.check(2), ["Shop: Recovered. The issue was: disk is broken"]);
  assert.deepEqual(world.rows, []);
  assert.deepEqual(await world.check(3), []);
});

Deno.test("AL1 an issue of a single check is not reported, and several make one alert", async () => {
  const world = new World();
  world.issues = [issue("a")];
  await world.check();
  world.issues = [];
  assert.deepEqual(await world.check(3), []);
  world.issues = [issue("a"), issue("b")];
  assert.deepEqual(await world.check(2), ["Shop: 2 new issues"]);
  world.issues = [issue("c")];
  assert.deepEqual(await world.check(2), ["Shop: 1 new issue, 2 recovered"]);
});

Deno.test("AL1 a restarted server does not report again", async () => {
  const world = new World();
  world.issues = [issue("disk")];
  await world.check(2);
  const next = new World();
  next.rows = world.rows;
  next.issues = world.issues;
  assert.deepEqual(await next.check(4), []);
});

Deno.test("AL1 while rows cannot be stored, an issue is reported once", async () => {
  const world = new World();
  world.issues = [issue("disk")];
  world.isDiskFull = true;
  assert.deepEqual(await world.check(5), ["Shop: disk is broken"]);
  world.isDiskFull = false;
  assert.deepEqual(await world.check(), []);
  assert.equal(world.rows.length, 1);
});

Deno.test("AL1 a server that may not check reports nothing, and later needs two own checks", async () => {
  const world = new World();
  world.issues = [issue("disk")];
  await world.check();
  world.mayCheck = false;
  assert.deepEqual(await world.check(3), []);
  world.mayCheck = true;
  assert.deepEqual(await world.check(), []);
  assert.deepEqual(await world.check(), ["Shop: disk is broken"]);
});

Deno.test("AL1 an alert that a shutdown interrupts is sent by the next process", async () => {
  const arrived = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Response>();
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => {
    arrived.resolve();
    return answer.promise;
  });
  const webhooks = parseWebhooks(`http://127.0.0.1:${server.addr.port}/`);
  const world = new World({ mail: [], webhooks });
  world.issues = [issue("disk")];
  await world.check();
  const checking = world.check();
  await arrived.promise;
  await world.alerts[Symbol.asyncDispose]();
  await checking;
  answer.resolve(new Response());
  assert.deepEqual(world.rows, []);
});

Deno.test("AL3 acknowledged and muted issues are not reported", async () => {
  const world = new World();
  world.issues = [issue("a"), issue("b")];
  world.rows = [
    { key: "a", text: "a", acknowledgedBy: "ada@example.com" },
    { key: "b", text: "b", mutedUntil: noon + 10 * alertLimits.checkMs },
  ];
  assert.deepEqual(await world.check(10), []);
  // The mute has expired.
  assert.deepEqual(await world.check(2), ["Shop: b is broken"]);
});

Deno.test("AL3 a mute outlives its issue, and the rows of ended issues are deleted", async () => {
  const admin = createApi<{ "_admin/alerts": typeof alertFunctions }>().admin._admin.alerts;
  await using stored = new ImportWorld({});
  const calls = new SystemCalls({
    query: (call) => stored.query(call),
    mutate(call) {
      stored.clock.now = world.now;
      return stored.host.mutate(call);
    },
  });
  const world = new World({}, calls);
  const notes = () => calls.query(admin.notes, {});
  await calls.mutate(admin.mute, { issue: "a", text: "a", forMs: 10 * alertLimits.checkMs });
  for (const issues of [[issue("a")], [], [issue("a")]]) {
    world.issues = issues;
    assert.deepEqual(await world.check(3), []);
    assert.equal((await notes()).length, 1);
  }
  // The mute has expired.
  assert.deepEqual(await world.check(3), ["Shop: a is broken"]);
  world.issues = [];
  assert.deepEqual(await world.check(2), ["Shop: Recovered. The issue was: a is broken"]);
  assert.deepEqual(await notes(), []);
});

Deno.test("AL4 in quiet hours alerts wait, and issues that ended in the meantime are not reported", async () => {
  const world = new World({ quietHours: parseQuietHours("12:00-12:10") });
  world.issues = [issue("short"), issue("long")];
  assert.deepEqual(await world.check(5), []);
  world.issues = [issue("long")];
  assert.deepEqual(await world.check(5), []);
  assert.deepEqual(await world.check(), ["Shop: long is broken"]);
});

Deno.test("AL4 a recovery during quiet hours is reported afterwards", async () => {
  const world = new World({ quietHours: parseQuietHours("12:03-12:10") });
  world.issues = [issue("disk")];
  assert.equal((await world.check(3)).length, 1);
  world.issues = [];
  assert.deepEqual(await world.check(7), []);
  assert.deepEqual(await world.check(), ["Shop: Recovered. The issue was: disk is broken"]);
});

Deno.test("AL4 AL5 a failed delivery is not repeated in quiet hours but afterwards", async () => {
  const world = new World({ quietHours: parseQuietHours("12:02-12:10") });
  world.issues = [issue("disk")];
  world.refusing = true;
  await world.check(2);
  world.refusing = false;
  assert.deepEqual(await world.check(8), []);
  assert.deepEqual(await world.check(), ["Shop: disk is broken"]);
});

Deno.test("AL4 quiet hours are times of a zone and may cross midnight", () => {
  const berlin = parseQuietHours("22:00-07:00 Europe/Berlin");
  assert.ok(berlin);
  const at = (time: string) => isQuiet(berlin, Date.parse(`2026-06-01T${time}Z`));
  assert.deepEqual([at("19:59"), at("20:00"), at("04:59"), at("05:00")], [false, true, true, false]);
  for (const text of ["", "22:00", "25:00-07:00", "22:00-07:00 Nowhere/City", "07:00-07:00"]) {
    assert.equal(parseQuietHours(text), null, text);
  }
});

Deno.test("AL5 a failed delivery is repeated with growing delays, and then abandoned", async () => {
  const world = new World();
  world.issues = [issue("disk")];
  world.refusing = true;
  await world.check(3);
  world.refusing = false;
  assert.deepEqual(await world.check(3), ["Shop: disk is broken"]);
  world.issues = [issue("disk"), issue("mail")];
  world.refusing = true;
  await world.check(70);
  const failed = world.logged.filter((line) => line === "warn Alert failed, will be retried").length;
  assert.equal(world.logged.filter((line) => line === "error Alert not delivered").length, 1);
  assert.equal(failed, 2 + alertLimits.attemptsMax - 1);
});

Deno.test("AL6 webhooks receive JSON, or messages of Slack and Discord", async () => {
  const received: { path: string; body: Record<string, unknown> }[] = [];
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const path = new URL(request.url).pathname;
    received.push({ path, body: await request.json() });
    if (path === "/moved") return Response.redirect("http://127.0.0.1:9/");
    return new Response(null, { status: path === "/gone" ? 410 : 204 });
  });
  const at = (path: string) => `http://127.0.0.1:${server.addr.port}/${path}`;
  const webhooks = parseWebhooks(
    [
      at("json"),
      `slack:${at("slack")}`,
      `discord:${at("discord")}`,
      at("gone"),
      at("moved"),
      "http://127.0.0.1:1/",
    ]
      .join(),
  );
  const world = new World({ mail: [], webhooks });
  const results = await world.alerts.test();
  assert.deepEqual(results.map(({ error }) => error), [
    null,
    null,
    null,
    "The server answered with status 410",
    "The server answered with status 302",
    "Cannot connect",
  ]);
  world.issues = [{ ...issue("errors:a"), text: "a <failed> & more" }];
  received.length = 0;
  await world.check(2);
  const bodies = Object.fromEntries(received.map(({ path, body }) => [path, body]));
  const url = "https://shop.example.com/_/#/logs";
  assert.deepEqual(bodies["/json"], {
    app: "Shop",
    at: new Date(noon + alertLimits.checkMs).toISOString(),
    items: [{ status: "active", severity: "error", key: "errors:a", text: "a <failed> & more", url }],
  });
  assert.deepEqual(bodies["/slack"], { text: `Shop: a &lt;failed&gt; &amp; more\n${url}` });
  assert.deepEqual(bodies["/discord"], {
    content: `Shop: a <failed> & more\n${url}`,
    allowed_mentions: { parse: [] },
  });
  await world.alerts[Symbol.asyncDispose]();
});

Deno.test("AL6 a test without recipients is refused", async () => {
  await assert.rejects(
    new World({ mail: [] }).alerts.test(),
    (error: unknown) => error instanceof UserError && error.code === "no_recipients",
  );
});

Deno.test("AL7 options of alerts are validated", () => {
  assert.deepEqual(parseWebhooks("https://hooks.slack.com/a, https://discord.com/api/b, json:http://x/"), [
    { format: "slack", url: "https://hooks.slack.com/a" },
    { format: "discord", url: "https://discord.com/api/b" },
    { format: "json", url: "http://x/" },
  ]);
  for (const text of ["ftp://x/", "teams:https://x/", "nothing"]) {
    assert.throws(() => parseWebhooks(text), text);
  }
  assert.deepEqual(parseThresholds("error-rate=5%,latency=2s"), { errorRate: 0.05, latencyMs: 2_000 });
  for (const text of ["errors=5%", "error-rate=5", "error-rate=101%", "lag"]) {
    assert.throws(() => parseThresholds(text), text);
  }
});

const healthy: IssueSources = {
  now: noon,
  disk: { free: 50e9, total: 100e9 },
  replication: null,
  cluster: null,
  backups: { newest: noon - 1_000, failure: null, damaged: [], isStaged: false },
  functions: [],
  isolates: { writer: { lost: 0 } },
  logTrouble: null,
  mailTrouble: null,
  failed: { jobs: [], crons: [] },
};
const hour = {
  calls: 100,
  errors: 0,
  errorRate: 0,
  cacheHits: 0,
  p50: 1,
  p95: 2,
  p99: 3,
  documentsRead: 0,
  indexRowsRead: 0,
  documentsWritten: 0,
  indexRowsWritten: 0,
};
const stats = (path: string, kind: "query" | "action", changes: Partial<typeof hour>) => ({
  function: path,
  kind,
  minute: null,
  hour: { ...hour, ...changes },
  day: null,
});

Deno.test("AL2 conditions become issues beyond their thresholds, severe ones first", () => {
  const keys = (sources: Partial<IssueSources>, thresholds = defaultThresholds) =>
    findIssues({ ...healthy, ...sources }, thresholds).map(({ key }) => key);
  assert.deepEqual(keys({}), []);
  const { backups } = healthy;
  assert.deepEqual(
    keys({
      disk: { free: 5e9, total: 100e9 },
      backups: { ...backups, newest: -Infinity, damaged: [{ name: "b", error: "torn" }], isStaged: true },
      isolates: { writer: { lost: 2 } },
      logTrouble: "full",
      mailTrouble: "refused",
      failed: { jobs: ["a"], crons: [{ name: "nightly", error: "no" }] },
    }),
    ["disk", "mail", "backup:age", "backup:b", "restore", "isolate:writer", "log", "cron:nightly", "jobs"],
  );
  const functions = [
    stats("a", "query", { errors: 2, errorRate: 0.02 }),
    stats("b", "query", { p95: 6_000 }),
    stats("c", "action", { p95: 6_000 }),
    stats("d", "query", { p95: 6_000, calls: 5 }),
  ];
  assert.deepEqual(keys({ functions }), ["errors:a", "latency:b"]);
  assert.deepEqual(keys({ functions }, { ...defaultThresholds, errorRate: 0.05, latencyMs: 10_000 }), []);
  const replication = { takenBy: null, lagMs: 61_000, errors: [{ message: "unreachable" }] };
  const [lag] = findIssues({ ...healthy, replication }, defaultThresholds);
  assert.equal(lag?.text, "The replica is 1 min behind: unreachable.");
  // Replication replaces backups.
  assert.deepEqual(
    keys({ replication: { ...replication, lagMs: 0 }, backups: { ...backups, newest: -Infinity } }),
    [],
  );
  assert.deepEqual(keys({ backups: { ...backups, newest: null, failure: "no such bucket" } }), [
    "backup:failed",
  ]);
  const server = { address: "10.0.0.1", lagCommits: 2_000, seenMs: 1 };
  assert.deepEqual(
    keys({ cluster: { awayMs: 5, servers: [server, { ...server, address: "10.0.0.2", seenMs: 11_000 }] } }),
    [
      "cluster:database",
      "cluster:10.0.0.2",
      "cluster:10.0.0.1",
    ],
  );
});
