/** Each option of `serve` with the main job of a server: a real process does all of it with the option set. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { optionsOf } from "../../mod/config/options.ts";
import { TestSocket } from "../auth/server/test_server.ts";
import { TestPostgres } from "../cluster/support/postgres.ts";
import { FakeBucket } from "../ops/scheduled/fake_bucket.ts";
import { Child } from "../support/processes/child.ts";
import { freePort } from "../support/ports.ts";
import { needs, postgres } from "../support/services.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";

const APP = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }) });
`,
  "notes.ts": `
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const list = untypedQuery({
  args: {},
  handler: async (ctx) => (await ctx.db.query("notes").collect()).map(({ text }) => text),
});
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
export const uploadUrl = untypedMutation((ctx) => ctx.storage.generateUploadUrl());
export const fileUrl = untypedQuery({
  args: { id: z.string() },
  handler: (ctx, { id }) => ctx.storage.getSignedUrl(id, { ttlSeconds: 60 }),
});
`,
};

type Values = Readonly<Record<string, string | true>>;

/** Differences from a server without options. */
interface Expected {
  /** Origins whose handshake is accepted, in addition to requests without one. */
  readonly origins?: readonly string[];
  /** Whether pages of all other origins are refused. */
  readonly onlyThose?: boolean;
  /** Code with which a sign-up, or its first sign-in, is refused. */
  readonly signUp?: string;
  readonly signIn?: string;
  /** Token of `/metrics`, or `null`. */
  readonly metrics?: string | null;
  readonly privateFiles?: boolean;
  /** Whether the server refuses writes. */
  readonly readOnly?: boolean;
  /** The response to `/`. */
  readonly page?: RegExp;
}

/** A server process and the folder of everything it uses. */
class Running implements AsyncDisposable {
  readonly #child: Child;
  readonly #url: string;
  readonly #expected: Expected;

  private constructor(child: Child, url: string, expected: Expected) {
    this.#child = child;
    this.#url = url;
    this.#expected = expected;
  }

  static async start(values: Values, expected: Expected = {}): Promise<Running> {
    const specs = new Map(optionsOf("serve").map(([name, spec]) => [String(name), spec]));
    const given: Values = { port: "0", ...values };
    const flags = Object.entries(given).flatMap(([name, value]) => {
      const flag = specs.get(name)?.flag;
      assert.ok(flag !== undefined, `There is no option ${name}`);
      started.add(name);
      return value === true ? [flag] : [flag, value];
    });
    const child = new Child({ args: [..."run --quiet --no-prompt -P=serve main.ts".split(" "), ...flags] });
    try {
      const [, port] = await child.line(/(?:app|server) +https?:\/\/[^ ]*?:(\d+)/);
      return new Running(child, `http://127.0.0.1:${port}`, expected);
    } catch (error) {
      await child[Symbol.asyncDispose]();
      throw error;
    }
  }

  get exited(): Promise<Deno.CommandStatus> {
    return this.#child.exited;
  }

  get lastOutput(): string {
    return this.#child.lastOutput;
  }

  async mainJob(): Promise<void> {
    await this.run();
    await this.stop();
  }

  /** Its main job, without the stop. */
  async run(): Promise<void> {
    await this.#handshakes();
    await this.#calls();
    await this.#files();
    await this.#accounts();
    await this.#pages();
    await this.#metrics();
  }

  /** Waits until it leads its cluster. */
  async leads(): Promise<void> {
    await until(async () => {
      const { cluster } = await (await fetch(`${this.#url}/api/health/ready`)).json();
      return cluster?.role === "leader";
    }, { what: "it leads" });
  }

  async stop(): Promise<void> {
    Deno.kill(this.#child.pid, "SIGTERM");
    assert.equal((await this.#child.exited).code, 0, this.#child.lastOutput);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }

  async #handshakes(): Promise<void> {
    const { origins = [this.#url], onlyThose = false } = this.#expected;
    const foreign = "https://evil.example";
    for (const origin of [null, ...origins, ...onlyThose ? [] : [foreign]]) {
      await using socket = await this.#socket(origin);
      socket.send({ type: "Connect", ...CONNECT, sessionId: crypto.randomUUID() });
    }
    if (onlyThose) await assert.rejects(this.#socket(foreign), /did not open/);
    const called = await this.#fetch("/api/query", { path: "notes:list", args: {} }, { Origin: foreign });
    await called.body?.cancel();
    assert.equal(called.status, onlyThose ? 403 : 200);
  }

  #socket(origin: string | null): Promise<TestSocket> {
    return TestSocket.open(`${this.#url}/api/sync`, origin === null ? {} : { Origin: origin });
  }

  async #calls(): Promise<void> {
    const { origins: [origin = null] = [] } = this.#expected;
    await using socket = await this.#socket(origin);
    socket.send({ type: "Connect", ...CONNECT, sessionId: crypto.randomUUID() });
    const add = { type: "Add", queryId: 0, udfPath: "notes:list", args: {} };
    socket.send({ type: "ModifyQuerySet", baseVersion: 0, newVersion: 1, modifications: [add] });
    const transitions = () => socket.messages.filter(({ type }) => type === "Transition");
    await socket.message(({ type, endVersion }) => type === "Transition" && endVersion.querySet === 1);
    const before = transitions().length;
    const text = crypto.randomUUID();
    socket.send({ type: "Mutation", requestId: 0, udfPath: "notes:add", args: { text } });
    const { success, ts } = await socket.message(({ type }) => type === "MutationResponse");
    assert.equal(success, this.#expected.readOnly !== true);
    const body = { path: "notes:add", args: { text: `${text} again` } };
    const called = await (await this.#fetch("/api/mutation", body)).json();
    if (this.#expected.readOnly === true) return assert.equal(called.status, "error");
    assert.equal(called.status, "success", JSON.stringify(called));
    // Both may arrive in one chunk.
    await socket.message(({ type, endVersion }) => type === "Transition" && endVersion.ts >= ts);
    await socket.message(({ type, endVersion }) => type === "Transition" && endVersion.ts >= called.ts);
    assert.ok(transitions().length > before);
    const { value } = await (await this.#fetch("/api/query", { path: "notes:list", args: {} })).json();
    assert.deepEqual(value.slice(-2), [text, `${text} again`]);
  }

  async #files(): Promise<void> {
    if (this.#expected.readOnly === true) return;
    const asked = await (await this.#fetch("/api/mutation", { path: "notes:uploadUrl", args: {} })).json();
    const upload = new URL(asked.value, this.#url);
    const contents = crypto.getRandomValues(new Uint8Array(60_000));
    const stored = await fetch(`${this.#url}${upload.pathname}${upload.search}`, {
      method: "POST",
      headers: { "Content-Type": "application/x-test" },
      body: contents,
    });
    assert.equal(stored.status, 200, await stored.clone().text());
    const { storageId } = await stored.json();
    const plain = await fetch(`${this.#url}/api/storage/${storageId}`);
    const isPrivate = this.#expected.privateFiles === true;
    if (isPrivate) {
      await plain.body?.cancel();
      assert.equal(plain.status, 403);
    } else assert.deepEqual(await plain.bytes(), contents);
    const reported =
      await (await this.#fetch("/api/query", { path: "notes:fileUrl", args: { id: storageId } }))
        .json();
    const signed = new URL(reported.value, this.#url);
    assert.deepEqual(await (await fetch(`${this.#url}${signed.pathname}${signed.search}`)).bytes(), contents);
  }

  async #accounts(): Promise<void> {
    const account = { email: `${crypto.randomUUID()}@example.com`, password: "correct horse" };
    const ask = async (operation: string) => {
      const response = await this.#fetch(`/api/auth/${operation}`, account);
      const { errorData, accessToken } = await response.json();
      return { code: errorData?.code, accessToken };
    };
    const signUp = await ask("signup");
    assert.equal(signUp.code, this.#expected.signUp);
    if (signUp.code !== undefined) return;
    const { code, accessToken } = await ask("signin");
    assert.equal(code, this.#expected.signIn);
    if (code !== undefined) return;
    const called = await this.#fetch("/api/query", { path: "notes:list", args: {} }, {
      Authorization: `Bearer ${accessToken}`,
    });
    assert.equal((await called.json()).status, "success");
  }

  async #pages(): Promise<void> {
    const dashboard = await fetch(`${this.#url}/_/`);
    assert.deepEqual([dashboard.status, dashboard.headers.get("content-type")], [
      200,
      "text/html; charset=utf-8",
    ]);
    assert.match(await dashboard.text(), /<script/);
    const { page } = this.#expected;
    if (page !== undefined) assert.match(await (await fetch(`${this.#url}/`)).text(), page);
    // A follower is ready when it has checked for commits.
    let report = "";
    await until(async () => {
      const ready = await fetch(`${this.#url}/api/health/ready`);
      report = await ready.text();
      return ready.status === 200;
    }, { what: () => report });
  }

  async #metrics(): Promise<void> {
    const { metrics = null } = this.#expected;
    const headers: Record<string, string> = metrics === null ? {} : { Authorization: `Bearer ${metrics}` };
    const response = await fetch(`${this.#url}/metrics`, { headers });
    const text = await response.text();
    if (metrics === null) return assert.equal(response.status, 404);
    assert.match(text, /syncline_http_requests_total\{[^}]*route="call"[^}]*\} [1-9]/);
  }

  #fetch(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return fetch(`${this.#url}${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  }
}

const CONNECT = { connectionCount: 0, lastCloseReason: null, clientVersion: "test" };

/** Options that a test below starts a server with: each option needs one. */
const rows = new Set<string>();
/** Those that a server was started with. */
const started = new Set<string>();

/** A test that starts servers with all of these options. */
function mainJobWith(
  options: readonly string[],
  { name, ignore = false, fn }: {
    readonly name: string;
    readonly ignore?: boolean;
    readonly fn: () => Promise<void>;
  },
): void {
  for (const option of options) rows.add(option);
  Deno.test({
    name: `OP8 ${name}`,
    ignore,
    async fn() {
      await fn();
      assert.deepEqual(
        options.filter((option) => !started.has(option)),
        [],
        "no server was started with these",
      );
    },
  });
}

async function appIn(folder: TempFolder): Promise<Values> {
  for (const name of ["functions", "static", "templates", "backups"]) await Deno.mkdir(folder.at(name));
  for (const [name, text] of Object.entries(APP)) {
    await Deno.writeTextFile(join(folder.at("functions"), name), text);
  }
  await Deno.writeTextFile(join(folder.at("static"), "index.html"), "<h1>The app</h1>");
  await Deno.writeTextFile(folder.at("env"), "KEY=value\n");
  await Deno.writeTextFile(folder.at("auth.json"), '{"providers":{},"issuers":[]}');
  return { data: folder.at("data"), functions: folder.at("functions") };
}

function bucketOptions(bucket: FakeBucket): Values {
  const { endpoint, region, accessKeyId, secretAccessKey } = bucket.location();
  return {
    storage: "s3://files/app",
    s3Endpoint: String(endpoint),
    s3Region: region,
    s3AccessKeyId: accessKeyId,
    s3SecretAccessKey: secretAccessKey,
  };
}

/** Answers every request with a text. */
function pageServer(text: string): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => new Response(text));
}

mainJobWith([
  "host",
  "memory",
  "demo",
  "static",
  "queryTimeout",
  "mutationTimeout",
  "actionNet",
  "envFile",
  "publicUrl",
  "publicOpenapi",
  "trustedProxy",
  "allowHost",
  "allowOrigin",
  "authRedirectUrl",
  "accessTokenTtl",
  "smtpUrl",
  "mailFrom",
  "authConfig",
  "mailVerify",
  "mailReset",
  "mailMagic",
  "mailChange",
  "mailDevice",
  "mailTemplates",
  "rateLimits",
  "appName",
  "environmentName",
  "environmentColor",
  "alertMail",
  "alertWebhook",
  "alertQuietHours",
  "alertWhen",
  "uploadMaxBytes",
  "storageKeepDeleted",
  "thumbSizes",
  "backupEvery",
  "backupKeep",
  "backupTo",
  "replicateTo",
  "replicateEvery",
  "snapshotEvery",
  "replicateKeep",
  "replicateMaxPending",
  "heartbeatUrl",
  "restartExitCode",
  "logKeep",
  "logMaxSize",
  "logArgs",
  "metrics",
  "metricsToken",
  "otlpEndpoint",
  "otlpHeaders",
  "otlpSample",
  "otlpSignals",
  "port",
  "data",
  "functions",
  "followed",
  "promote",
], {
  name: "the main job with the options of a server behind a proxy, then as its replica's follower",
  fn: async () => {
    await using folder = new TempFolder();
    const app = await appIn(folder);
    const heartbeats = pageServer("ok");
    const mail = (text: string) => `Subject: ${text}\n\n${text}: {{link}}`;
    const metricsToken = "metrics-token";
    const origins = ["https://app.example.com", "https://pages.example.com"];
    await using server = await Running.start({
      ...app,
      host: "127.0.0.1",
      memory: "1GiB",
      demo: true,
      static: folder.at("static"),
      queryTimeout: "10s",
      mutationTimeout: "4s",
      actionNet: "127.0.0.1",
      envFile: folder.at("env"),
      publicUrl: "https://app.example.com",
      publicOpenapi: true,
      trustedProxy: "127.0.0.1",
      allowHost: "api.example.com,*.apps.example.com",
      allowOrigin: "https://pages.example.com",
      authRedirectUrl: "https://pages.example.com/auth",
      accessTokenTtl: "10m",
      smtpUrl: "smtp://127.0.0.1:9",
      mailFrom: "App <app@example.com>",
      authConfig: folder.at("auth.json"),
      mailVerify: mail("Verify"),
      mailReset: mail("Reset"),
      mailMagic: mail("Sign in"),
      mailChange: mail("Change"),
      mailDevice: "Subject: New device\n\n{{device}}, {{time}}",
      mailTemplates: folder.at("templates"),
      rateLimits: "mailsPerAddress=10/2",
      appName: "App",
      environmentName: "Staging",
      environmentColor: "yellow",
      alertMail: "ops@example.com",
      alertWebhook: "slack:http://127.0.0.1:9/hook",
      alertQuietHours: "22:00-07:00 Europe/Berlin",
      alertWhen: "error-rate=5%,latency=2s",
      uploadMaxBytes: "2MiB",
      storageKeepDeleted: "1h",
      thumbSizes: "100x100",
      backupEvery: "1h",
      backupKeep: "2",
      backupTo: folder.at("backups"),
      replicateTo: folder.at("replica"),
      replicateEvery: "100ms",
      snapshotEvery: "1h",
      replicateKeep: "1d",
      replicateMaxPending: "64MiB",
      heartbeatUrl: `http://127.0.0.1:${heartbeats.addr.port}/`,
      restartExitCode: "75",
      logKeep: "1d",
      logMaxSize: "64MiB",
      logArgs: true,
      metrics: true,
      metricsToken,
      // Nothing listens there.
      otlpEndpoint: "http://127.0.0.1:9",
      otlpHeaders: "authorization=Bearer%20none",
      otlpSample: "0.5",
      otlpSignals: "traces,logs",
    }, { origins, onlyThose: true, metrics: metricsToken, page: /The app/ });
    await server.mainJob();
    await heartbeats.shutdown();
    const replica = { functions: folder.at("functions"), followed: folder.at("replica") };
    await using follower = await Running.start({ ...replica, data: folder.at("follower") }, {
      readOnly: true,
      signUp: "read_only",
    });
    await follower.mainJob();
    await using promoted = await Running.start({ ...replica, data: folder.at("promoted"), promote: true });
    await promoted.mainJob();
  },
});

mainJobWith([
  "workers",
  "storagePrivate",
  "disableMagicLink",
  "disableTotp",
  "disablePasskeys",
  "disableDeviceMail",
  "userKeys",
  "anonymousSignIn",
  "anonymousUserTtl",
], {
  name: "the main job with several processes",
  fn: async () => {
    await using folder = new TempFolder();
    await using server = await Running.start({
      ...await appIn(folder),
      workers: "2",
      allowOrigin: "https://pages.example.com",
      storagePrivate: true,
      disableMagicLink: true,
      disableTotp: true,
      disablePasskeys: true,
      disableDeviceMail: true,
      userKeys: "tasks:*",
      anonymousSignIn: true,
      anonymousUserTtl: "7d",
      metrics: true,
    }, { origins: ["https://pages.example.com"], onlyThose: true, privateFiles: true, metrics: "" });
    await server.mainJob();
  },
});

mainJobWith(["dev", "devFrontend", "skipTypeCheck", "disableSignups"], {
  name: "the main job in development, with a server of the frontend",
  fn: async () => {
    await using folder = new TempFolder();
    const frontend = pageServer("<h1>Of the frontend</h1>");
    await using server = await Running.start({
      ...await appIn(folder),
      dev: true,
      devFrontend: `http://127.0.0.1:${frontend.addr.port}`,
      skipTypeCheck: true,
      disableSignups: true,
    }, { signUp: "signups_disabled", page: /Of the frontend/ });
    await server.mainJob();
    await frontend.shutdown();
  },
});

mainJobWith([
  "takeover",
  "storage",
  "s3Endpoint",
  "s3Region",
  "s3AccessKeyId",
  "s3SecretAccessKey",
  "requireVerification",
], {
  name: "the main job behind a takeover, with files in a bucket",
  fn: async () => {
    await using folder = new TempFolder();
    await using bucket = new FakeBucket();
    const app = {
      ...await appIn(folder),
      ...bucketOptions(bucket),
      requireVerification: true,
      smtpUrl: "smtp://127.0.0.1:9",
      mailFrom: "App <app@example.com>",
    } as const;
    await using first = await Running.start(app);
    await using second = await Running.start({ ...app, takeover: true }, { signIn: "email_not_verified" });
    assert.equal((await first.exited).code, 0);
    await second.mainJob();
    assert.ok([...bucket.objects.keys()].some((name) => name.includes("app/")), "the file is in the bucket");
  },
});

mainJobWith(["cluster", "clusterSecret", "clusterSnapshots", "clusterAddress", "clusterListen"], {
  ...needs(postgres, "the main job on a leader of a cluster, and on its follower"),
  fn: async () => {
    await using folder = new TempFolder();
    const app = await appIn(folder);
    await using database = await TestPostgres.start();
    await using bucket = new FakeBucket();
    const cluster = {
      ...bucketOptions(bucket),
      cluster: await database.database(),
      clusterSecret: "a secret that is long enough",
      clusterSnapshots: folder.at("snapshots"),
    };
    const at = (port: number) => ({
      clusterAddress: `127.0.0.1:${port}`,
      clusterListen: `127.0.0.1:${port}`,
    });
    const [one, two] = [freePort(), freePort()];
    await using leader = await Running.start({ ...app, ...cluster, ...at(one) });
    await using follower = await Running.start({ ...app, data: folder.at("second"), ...cluster, ...at(two) });
    await follower.run().catch(async (error) => {
      // On a busy machine it may have become the leader, which closes sockets and ends calls.
      if (!follower.lastOutput.includes("The lease of the cluster had ended")) throw error;
      await follower.leads();
      await follower.run();
    });
    await follower.stop();
    await leader.leads();
    await leader.mainJob();
  },
});

Deno.test("OP8 each option of serve has a row", () => {
  assert.deepEqual([...rows].sort(), optionsOf("serve").map(([name]) => String(name)).sort());
});
