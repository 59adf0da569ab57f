import assert from "node:assert/strict";
import { runCommandLine } from "../../mod/cli/command_line.ts";
import { optionsOf, type OptionValues, type ServeOptions } from "../../mod/config/options.ts";

/** Runs the command line with a `serve` that only records its options. */
async function run(args: readonly string[], env: Record<string, string> = {}) {
  let out = "";
  let err = "";
  let served: ServeOptions | null = null;
  const code = await runCommandLine([{
    name: "serve",
    description: "Serve",
    run: (options) => {
      served = options;
      return Promise.resolve(7);
    },
  }], {
    args,
    env: (name) => env[name],
    out: (text) => out += text,
    err: (text) => err += text,
  });
  return { code, out, err, served: served as ServeOptions | null };
}

Deno.test("serve without options uses the defaults of the table, and returns the program's exit code", async () => {
  const { code, served } = await run(["serve"]);
  assert.equal(code, 7);
  assert.deepEqual(
    served,
    Object.fromEntries(optionsOf("serve").map(([name, spec]) => [name, spec.default])),
  );
});

Deno.test("flags are parsed to typed values", async () => {
  const { served } = await run([
    ..."serve --host 0.0.0.0 --port 0 --data /d --functions=f --static s --dev".split(" "),
    ..."--action-net api.example.com,[::1]:80 --env-file .env".split(" "),
    ..."--public-url https://api.example.com/ --trusted-proxy 10.0.0.0/8 --trusted-proxy ::1".split(" "),
    ..."--allow-origin https://a.example.com".split(" "),
    ..."--auth-redirect-url https://app.example.com/a,https://b.example.com".split(" "),
    ..."--require-verification --disable-signups --disable-magic-link --disable-totp --disable-passkeys --disable-device-mail --user-keys tasks:* --anonymous-sign-in --anonymous-user-ttl 7d --access-token-ttl 5m"
      .split(" "),
    ..."--smtp-url smtps://mail.example.com --mail-from a@example.com --mail-templates t".split(" "),
    "--app-name",
    "My app",
    ..."--storage s3://files/app/one/ --s3-endpoint https://s3.example.com --s3-region eu-1".split(" "),
    ..."--s3-access-key-id id --s3-secret-access-key key".split(" "),
    ..."--upload-max-bytes 2GiB --storage-private --storage-keep-deleted 7d --thumb-sizes 100,400x300".split(
      " ",
    ),
    ..."--backup-every 12h --backup-keep 3 --backup-to s3://backups/app".split(" "),
    ..."--replicate-to /mnt/replica --replicate-every 5s --snapshot-every 12h --replicate-keep 3d".split(" "),
    ..."--replicate-max-pending 64MiB --heartbeat-url https://ping.example.com/x?y=1".split(" "),
    ..."--restart-exit-code 75".split(" "),
    ..."--query-timeout 10s --mutation-timeout 2s".split(" "),
    ..."--metrics --metrics-token s3cret==".split(" "),
    ..."--log-keep 2d --log-max-size 64MiB".split(" "),
  ]);
  assert.deepEqual(served, {
    ...Object.fromEntries(optionsOf("serve").map(([name, spec]) => [name, spec.default])),
    host: "0.0.0.0",
    port: 0,
    data: "/d",
    functions: "f",
    static: "s",
    dev: true,
    queryTimeout: 10_000,
    mutationTimeout: 2_000,
    actionNet: ["api.example.com", "[::1]:80"],
    envFile: ".env",
    publicUrl: "https://api.example.com",
    trustedProxy: ["10.0.0.0/8", "::1"],
    allowOrigin: ["https://a.example.com"],
    authRedirectUrl: ["https://app.example.com/a", "https://b.example.com"],
    requireVerification: true,
    disableSignups: true,
    disableMagicLink: true,
    disableTotp: true,
    disablePasskeys: true,
    disableDeviceMail: true,
    userKeys: ["tasks:*"],
    anonymousSignIn: true,
    anonymousUserTtl: 7 * 86_400_000,
    accessTokenTtl: 300_000,
    smtpUrl: "smtps://mail.example.com",
    mailFrom: "a@example.com",
    mailTemplates: "t",
    appName: "My app",
    authConfig: null,
    rateLimits: {},
    storage: { bucket: "files", prefix: "app/one/" },
    s3Endpoint: "https://s3.example.com",
    s3Region: "eu-1",
    s3AccessKeyId: "id",
    s3SecretAccessKey: "key",
    uploadMaxBytes: 2_147_483_648,
    storagePrivate: true,
    storageKeepDeleted: 604_800_000,
    thumbSizes: ["100x100", "400x300"],
    backupEvery: 43_200_000,
    backupKeep: 3,
    backupTo: { kind: "bucket", bucket: "backups", prefix: "app/" },
    replicateTo: { kind: "folder", path: "/mnt/replica" },
    replicateEvery: 5_000,
    snapshotEvery: 43_200_000,
    replicateKeep: 259_200_000,
    replicateMaxPending: 67_108_864,
    heartbeatUrl: "https://ping.example.com/x?y=1",
    restartExitCode: 75,
    logKeep: 2 * 86_400_000,
    logMaxSize: 64 * 1024 ** 2,
    metrics: true,
    metricsToken: "s3cret==",
  });
});

Deno.test("[DP13] --no-static overrides SYNCLINE_STATIC", async () => {
  const given: unknown[] = [];
  const deploy = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const run = ({ static: folder, noStatic }: OptionValues) => {
      given.push([folder, noStatic]);
      return Promise.resolve(0);
    };
    await runCommandLine([{ name: "deploy", description: "Deploy", run }], {
      args: ["deploy", ...args],
      env: (name) => env[name],
      out: () => {},
      err: () => {},
    });
  };
  await deploy(["--no-static"], { SYNCLINE_STATIC: "dist" });
  await deploy(["--static", "build"], { SYNCLINE_STATIC: "dist" });
  await deploy([], { SYNCLINE_STATIC: "dist" });
  await deploy([], { SYNCLINE_NO_STATIC: "true" });
  assert.deepEqual(given, [[null, true], ["build", false], ["dist", false], [null, true]]);
});

Deno.test("lengths of time and sizes are read in every unit", async () => {
  for (const [text, ms] of [["250ms", 250], ["2s", 2_000], ["3m", 180_000], ["1h", 3_600_000]] as const) {
    assert.equal((await run(["serve", "--replicate-every", text])).served?.replicateEvery, ms, text);
  }
  const sizes = [["700", 700], ["5KB", 5_000], ["5KiB", 5_120], ["2MB", 2_000_000], [
    "1GB",
    10 ** 9,
  ]] as const;
  for (const [text, bytes] of sizes) {
    assert.equal((await run(["serve", "--upload-max-bytes", text])).served?.uploadMaxBytes, bytes, text);
  }
});

Deno.test("environment variables set options, and flags take precedence", async () => {
  const env = { SYNCLINE_PORT: "4000", SYNCLINE_DEV: "yes", SYNCLINE_DATA: "", SYNCLINE_HOST: "::" };
  const { served } = await run(["serve", "--port", "5000"], env);
  assert.equal(served?.port, 5000);
  assert.equal(served?.dev, true);
  assert.equal(served?.data, "./data", "an empty variable counts as not set");
  assert.equal(served?.host, "::");
});

const wrong: [args: string[], env: Record<string, string>, message: RegExp][] = [
  [["serve", "--nope"], {}, /unknown option '--nope'/],
  [["serve", "--log-keep", "1s"], {}, /--log-keep: expected off, or a duration from 1m to 3660d/],
  [["serve", "--memory", "512"], {}, /--memory: expected at least 128MiB, received "512"/],
  [["serve", "--log-max-size", "1MiB"], {}, /--log-max-size: expected at least 16MiB/],
  [
    ["serve", "--mail-reset", "Subject: s\n\nnothing"],
    {},
    /--mail-reset: .*neither \{\{link\}\} nor \{\{code\}\}/,
  ],
  [["serve", "--mail-verify", "no subject"], {}, /--mail-verify: .*first line must be "Subject/],
  [
    ["serve", "--metrics-token", "two words"],
    {},
    /--metrics-token: expected a token that contains only letters/,
  ],
  [["serve", "--prot", "1"], {}, /Did you mean --port/],
  [["serve", "extra"], {}, /too many arguments/],
  [["serve", "--port"], {}, /argument missing/],
  [["serve", "--port", "x"], {}, /--port: expected a port from 0 to 65535, received "x"/],
  [["serve", "--port", "65536"], {}, /--port: expected a port/],
  [["serve", "--port", "-1"], {}, /--port: expected a port/],
  [["serve", "--cluster-address", "here"], {}, /--cluster-address: expected host:port, received "here"/],
  [["serve", "--cluster-address", "here:0"], {}, /--cluster-address: expected host:port/],
  [["serve", "--cluster-address", "::1:80"], {}, /--cluster-address: expected host:port/],
  [["serve", "--replicate-every", "2h"], {}, /--replicate-every: expected a duration from 100ms to 1h/],
  [["serve", "--replicate-max-pending", "1KiB"], {}, /--replicate-max-pending: expected a size of at least/],
  [["serve", "--heartbeat-url", "ftp://x"], {}, /--heartbeat-url: expected a URL/],
  [["serve", "--backup-every", "999ms"], {}, /--backup-every: expected a duration from 1s to 366d/],
  [["serve", "--backup-every", "367d"], {}, /--backup-every: expected a duration from 1s/],
  [["serve", "--backup-every", "often"], {}, /--backup-every: expected a duration/],
  [["serve", "--backup-keep", "0"], {}, /--backup-keep: expected a number from 1 to 10000/],
  [["serve", "--backup-keep", "2.5"], {}, /--backup-keep: expected a number/],
  [["serve", "--backup-to", "s3://B/x"], {}, /--backup-to: expected a location such as s3:/],
  [["serve", "--restart-exit-code", "0"], {}, /--restart-exit-code: expected an exit code from 1 to 255/],
  [["serve", "--restart-exit-code", "256"], {}, /--restart-exit-code: expected an exit code/],
  [["serve", "--workers", "0"], {}, /--workers: expected a count from 1 to 64/],
  [["serve", "--workers", "65"], {}, /--workers: expected a count/],
  [["serve", "--port", "80.5"], {}, /--port: expected a port/],
  [["serve", "--host", "http://x"], {}, /--host: expected an address/],
  [["serve", "--public-url", "https://a.example.com/path"], {}, /--public-url: expected a URL/],
  [["serve", "--trusted-proxy", "proxy.example.com"], {}, /--trusted-proxy: Cannot trust "proxy/],
  [["serve", "--auth-redirect-url", "app.example.com"], {}, /--auth-redirect-url: Cannot allow redirects/],
  [["serve", "--access-token-ttl", "15"], {}, /--access-token-ttl: expected a duration/],
  [["serve", "--access-token-ttl", "0m"], {}, /--access-token-ttl: expected a duration/],
  [["serve", "--upload-max-bytes", "1 MB"], {}, /--upload-max-bytes: expected a size/],
  [["serve", "--storage", "/files"], {}, /--storage: expected a location such as s3:/],
  [["serve", "--storage", "s3://files/a//b"], {}, /--storage: expected a location such as s3:/],
  [["serve", "--s3-endpoint", "s3.example.com"], {}, /--s3-endpoint: expected a URL/],
  [["serve", "--thumb-sizes", "100,2000"], {}, /--thumb-sizes: expected sizes such as 100x100/],
  [["serve", "--upload-max-bytes", "0"], {}, /--upload-max-bytes: expected a size/],
  [["serve", "--host", "localhost:80"], {}, /--host: expected an address/],
  [["serve", "--data", ""], {}, /--data: expected a path/],
  [["serve", "--action-net", "https://x"], {}, /--action-net: expected hosts/],
  [["serve"], { SYNCLINE_PORT: "http" }, /SYNCLINE_PORT: expected a port/],
  [["serve"], { SYNCLINE_DEV: "maybe" }, /SYNCLINE_DEV: expected true or false/],
  [["sevre"], {}, /unknown command/],
];

Deno.test("an unknown argument ends with exit code 2 and a message, and nothing is served", async (t) => {
  for (const [args, env, message] of wrong) {
    await t.step([...args, JSON.stringify(env)].join(" "), async () => {
      const { code, err, served } = await run(args, env);
      assert.match(err, message);
      assert.equal(code, 2);
      assert.equal(served, null);
    });
  }
});

Deno.test("--help names every flag, its default and its environment variable", async () => {
  const { code, out, served } = await run(["serve", "--help"]);
  assert.equal(code, 0);
  assert.equal(served, null);
  const text = out.replace(/\s+/g, " ");
  for (const [, spec] of optionsOf("serve")) {
    assert.ok(text.includes(spec.flag), spec.flag);
    assert.ok(text.includes(spec.env), spec.env);
    if (spec.defaultText !== null) assert.ok(text.includes(`default: ${spec.defaultText}`), spec.flag);
  }
});

Deno.test("--version prints the version of deno.json", async () => {
  const { version } = JSON.parse(await Deno.readTextFile(new URL("../../deno.json", import.meta.url)));
  assert.deepEqual(await run(["--version"]), { code: 0, out: `${version}\n`, err: "", served: null });
});

Deno.test("deprecated flags and variables set the option of the new name", async () => {
  const parsed = async (args: readonly string[], env: Record<string, string> = {}) => {
    let values: unknown;
    const ignore = () => {};
    const around = { args, env: (name: string) => env[name], out: ignore, err: ignore };
    await runCommandLine([
      { name: "logs", description: "", run: ({ tail }) => Promise.resolve(Number(values = tail)) },
      {
        name: "migrate",
        description: "",
        run: ({ fromStart }) => Promise.resolve(Number(values = fromStart)),
      },
    ], around);
    return values;
  };
  for (const flag of ["--tail", "--follow"]) assert.equal(await parsed(["logs", flag]), true, flag);
  for (const flag of ["--from-start", "--anew"]) assert.equal(await parsed(["migrate", flag]), true, flag);
  assert.equal(await parsed(["logs"], { SYNCLINE_FOLLOW: "1" }), true);
  assert.equal(await parsed(["migrate"], { SYNCLINE_ANEW: "1" }), true);
  assert.equal(await parsed(["migrate"], { SYNCLINE_FROM_START: "1" }), true);
  assert.equal(await parsed(["logs"]), false);
});
