/** Settings: set by administrators, overridden by flags, applied immediately, with encrypted secrets. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { optionsOf, type ServeOptions } from "../../../mod/config/options.ts";
import { liveConfig, settingSpecs } from "../../../mod/config/settings.ts";
import {
  decryptSecret,
  encryptSecret,
  secretToEnterAgain,
  withoutPassword,
  withStoredPassword,
} from "../../../mod/kit/secret_encryption.ts";
import { SMTPServer } from "smtp-server";
import { follow } from "../../auth/support/follow.ts";
import { openIdSecret, startOpenIdServer } from "../../auth/support/open_id_server.ts";
import { until } from "../../support/waiting.ts";
import { startWorld } from "./support/world.ts";

/** A mail server that accepts everything; resolves with the mails. */
async function startMailServer() {
  const mails: string[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData(stream, _session, done) {
      let text = "";
      stream.on("data", (chunk) => text += chunk);
      stream.on("end", () => {
        mails.push(text);
        done();
      });
    },
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const address = server.server.address();
  assert.ok(address !== null && typeof address === "object");
  return {
    mails,
    url: `smtp://127.0.0.1:${address.port}`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

Deno.test("settings", async (t) => {
  const values = Object.fromEntries(
    optionsOf("serve").map(([name, { default: value }]) => [name, value]),
  ) as unknown as ServeOptions;
  const given = {
    values: { ...values, appName: "From a flag" },
    explicit: new Map([["appName", { by: "flag", text: "From a flag" }] as const]),
  };
  const folder = await Deno.makeTempDir();
  await using mail = await startMailServer();
  await using world = await startWorld({ config: { explicitOptions: given } });
  const { ok, call, server } = world;
  const set = (changes: Record<string, string | null>) => ok("action", "_admin/settings:set", { changes });
  const setting = async (wanted: string) =>
    (await ok("query", "_admin/settings:list")).find(({ name }: { name: string }) => name === wanted);
  const signUp = (email: string) =>
    server.post("/api/auth/signup", { email, password: "correct horse battery" });

  await t.step(
    "[SE4] every option that is a setting is listed with the source of its value",
    async () => {
      const listed = await ok("query", "_admin/settings:list");
      const expected = optionsOf("serve").filter(([, spec]) => spec.setting !== undefined).map(([name]) =>
        name
      );
      assert.deepEqual(listed.map(({ name }: { name: string }) => name), expected);
      const { flag, env, kind, source, text } = await setting("disableSignups");
      assert.deepEqual(
        [flag, env, kind, source, text],
        ["--disable-signups", "SYNCLINE_DISABLE_SIGNUPS", "switch", "default", null],
      );
    },
  );

  await t.step("[SE5] a setting is applied without a restart, and reset", async () => {
    assert.deepEqual(await set({ disableSignups: "true" }), { overridden: [] });
    const refused = await signUp("late@example.com");
    assert.equal(refused.body.errorData.code, "signups_disabled");
    const { source, text, set: isSet } = await setting("disableSignups");
    assert.deepEqual([source, text, isSet], ["setting", "true", true]);
    await set({ disableSignups: null });
    assert.equal((await signUp("late@example.com")).status, 200);

    const request = { email: "late@example.com", redirectTo: "https://app.example.com/reset" };
    assert.equal(
      (await server.post("/api/auth/reset/request", request)).body.errorData.code,
      "invalid_redirect",
    );
    await set({ authRedirectUrl: "https://app.example.com" });
    assert.equal((await server.post("/api/auth/reset/request", request)).status, 200);

    await set({ rateLimits: "mailsPerAddress=1/0.001" });
    const other = { ...request, email: "once@example.com" };
    assert.equal((await server.post("/api/auth/reset/request", other)).status, 200);
    assert.equal((await server.post("/api/auth/reset/request", other)).status, 429);
    await set({ rateLimits: null });
  });

  await t.step(
    "[SE6] a configured mail server is used immediately, and tested with a test mail",
    async () => {
      assert.equal(
        (await call("action", "_admin/settings:testMail", { to: "a@example.com" })).code,
        "mail_disabled",
      );
      await set({ smtpUrl: mail.url, mailFrom: "App <app@example.com>" });
      await ok("action", "_admin/settings:testMail", { to: "a@example.com" });
      assert.match(mail.mails[0] ?? "", /Subject: Test mail/);
      const { userId } = await ok("action", "_admin/users:create", { email: "mailed@example.com" });
      assert.deepEqual(await ok("action", "_admin/users:sendReset", { userId }), { sent: true });
      await set({ smtpUrl: "smtp://user:pass%2Fword@127.0.0.1:1" });
      const shown = async () => (await setting("smtpUrl")).text;
      assert.equal(await shown(), "smtp://user@127.0.0.1:1");
      const failed = await call("action", "_admin/settings:testMail", { to: "a@example.com" });
      assert.deepEqual([failed.status, failed.code], [400, "mail_failed"]);
    },
  );

  await t.step(
    "[SE3] a stored secret of a provider is kept under another name, not for another preset",
    () => {
      const fields = { clientId: "a", clientSecret: { sealed: "x" } };
      const configOf = (providers: object) => JSON.stringify({ providers });
      const stored = configOf({ github: fields });
      assert.equal(secretToEnterAgain(configOf({ work: { preset: "github", ...fields } }), stored), null);
      assert.equal(
        secretToEnterAgain(configOf({ discord: fields }), stored),
        "providers.discord.clientSecret",
      );
    },
  );

  await t.step("[SE3] the password of a URL is kept for the same user and host only", () => {
    const stored = "smtp://user:pass%2Fword@mail.example.com:587";
    assert.equal(
      withStoredPassword("smtps://user@mail.example.com:465", stored),
      "smtps://user:pass%2Fword@mail.example.com:465",
    );
    for (
      const text of [
        "smtp://user@other.example.com:587",
        "smtp://other@mail.example.com:587",
        "smtp://mail.example.com:587",
        "smtp://user:new@mail.example.com:587",
        "no URL",
      ]
    ) assert.equal(withStoredPassword(text, stored), text);
    assert.equal(withoutPassword(stored), "smtp://user@mail.example.com:587");
    assert.equal(withoutPassword("user:password"), "");
    assert.equal(withoutPassword("no URL: secret"), "");
  });

  await t.step("[SE5] so are required verification and sign-in by mail", async () => {
    await set({ smtpUrl: mail.url, requireVerification: "true" });
    const email = "unconfirmed@example.com";
    const { body: signedUp } = await signUp(email);
    assert.equal(signedUp.accessToken, undefined, "there is no session before the address is confirmed");
    const signIn = () => server.post("/api/auth/signin", { email, password: "correct horse battery" });
    assert.equal((await signIn()).body.errorData.code, "email_not_verified");
    const { page: [user] } = await ok("query", "_admin/users:list", {
      paginationOpts: { cursor: null, numItems: 1 },
      search: email,
    });
    assert.deepEqual(await ok("action", "_admin/users:sendVerification", { userId: user.userId }), {
      sent: true,
    });
    // One for signing up, and another.
    await until(() => mail.mails.filter((text) => text.includes(`To: ${email}`)).length === 2);
    await set({ requireVerification: null });
    assert.equal((await signIn()).status, 200);

    const byMail = async () => (await (await fetch(`${server.url}/api/auth/providers`)).json()).magicLink;
    assert.equal(await byMail(), true);
    await set({ disableMagicLink: "true" });
    assert.equal(await byMail(), false);
    const asked = await server.post("/api/auth/magic/request", { email });
    assert.equal(asked.body.errorData.code, "magic_link_disabled");
    await set({ disableMagicLink: null });
    assert.equal(await byMail(), true);
  });

  await t.step("[SE2] a flag takes precedence over a setting, and the answer reports it", async () => {
    assert.deepEqual(await set({ appName: "From a setting" }), { overridden: ["appName"] });
    const { source, given, text } = await setting("appName");
    assert.deepEqual([source, given, text], ["flag", { by: "flag", text: "From a flag" }, "From a setting"]);
  });

  await t.step("[SE7] settings are validated like flags, atomically", async () => {
    const cases: readonly (readonly [Record<string, string | null>, string])[] = [
      [{ nothing: "x" }, "unknown_setting"],
      [{ port: "80" }, "unknown_setting"],
      [{ disableMagicLink: "true", disableSignups: "perhaps" }, "invalid_setting"],
      [{ authRedirectUrl: "not a url" }, "invalid_setting"],
      [{ rateLimits: "nothing=1/1" }, "invalid_setting"],
      [{ rateLimits: "mailsPerAddress=0/1" }, "invalid_setting"],
      [{ backupEvery: "1ms" }, "invalid_setting"],
      [{ backupTo: join(folder, "b") }, "invalid_setting"],
      [{ mailFrom: null }, "invalid_setting"],
      [{ backupEvery: "1h", backupTo: "s3://bucket/prefix" }, "invalid_setting"],
    ];
    for (const [changes, code] of cases) {
      const answer = await call("action", "_admin/settings:set", { changes });
      assert.deepEqual([answer.status, answer.code], [400, code], JSON.stringify(changes));
    }
    assert.equal((await setting("disableMagicLink")).set, false);
  });

  await t.step("[SE1] schedule and backup target are changed at runtime", async () => {
    const cron = async () =>
      (await ok("query", "_admin/schedule:crons")).find(({ name }: { name: string }) =>
        name === "svc-backup"
      );
    assert.equal(await cron(), undefined);
    const place = join(folder, "backups");
    await Deno.mkdir(place);
    await set({ backupEvery: "1h", backupTo: place });
    assert.deepEqual((await cron()).schedule, { kind: "interval", everyMs: 3_600_000 });
    // No backup exists yet, so one is overdue.
    for (;;) {
      if ((await Array.fromAsync(Deno.readDir(place))).some(({ name }) => name.endsWith(".tar.zst"))) break;
    }
    await set({ backupEvery: "2h" });
    assert.deepEqual((await cron()).schedule, { kind: "interval", everyMs: 7_200_000 });
    await set({ backupEvery: null, backupTo: null });
    assert.equal(await cron(), undefined);
  });

  await t.step("[SE8] the log retention is changed at runtime", async () => {
    assert.deepEqual(await set({ logKeep: "30d", logMaxSize: "64MiB" }), { overridden: [] });
    assert.deepEqual([(await setting("logKeep")).source, (await setting("logKeep")).text], [
      "setting",
      "30d",
    ]);
    for (const changes of [{ logKeep: "off" }, { logKeep: "1s" }, { logMaxSize: "1MiB" }]) {
      const answer = await call("action", "_admin/settings:set", { changes });
      assert.deepEqual([answer.status, answer.code], [400, "invalid_setting"], JSON.stringify(changes));
    }
    await set({ logKeep: null, logMaxSize: null });
  });

  await t.step(
    "[SE9] mail templates are settings: previewed, tested with a mail, and used immediately",
    async () => {
      const text =
        "Subject: {{app}}: your password\n\nHello {{email}},\nset it <here>: {{link}}\n\n{{code}}, {{validFor}}";
      const shown = await ok("action", "_admin/settings:previewMail", { kind: "reset", text });
      assert.equal(shown.subject, "From a flag: your password");
      assert.match(
        shown.text,
        /^Hello somebody@example\.com,\nset it <here>: http\S+#svc_reset_token=sample\n\n123456, 30 minutes$/,
      );
      assert.match(
        shown.html,
        /<p>Hello somebody@example\.com,<br>\nset it &lt;here&gt;: <a href="http[^"]+">http[^<]+<\/a><\/p>/,
      );
      assert.match(shown.html, /<strong>123456<\/strong>, 30 minutes/);
      const builtIn = await ok("action", "_admin/settings:previewMail", { kind: "reset" });
      assert.equal(builtIn.subject, "Reset your password", "looking at a text changes nothing");

      await set({ smtpUrl: mail.url, mailFrom: "App <app@example.com>" });
      await ok("action", "_admin/settings:testMail", { to: "a@example.com", mail: { kind: "reset", text } });
      assert.match(mail.mails.at(-1) ?? "", /Subject: From a flag: your password/);
      assert.deepEqual(await set({ mailReset: text }), { overridden: [] });
      const { userId } = await ok("action", "_admin/users:create", { email: "asked@example.com" });
      assert.deepEqual(await ok("action", "_admin/users:sendReset", { userId }), { sent: true });
      await until(() => /^To: asked@example\.com/m.test(mail.mails.at(-1) ?? ""));
      assert.match(mail.mails.at(-1) ?? "", /Subject: From a flag: your password/);

      for (
        const text of [
          "no subject",
          "Subject: s\n\nneither link nor code",
          "Subject: s\n\n{{link}} {{password}}",
          "Subject: {{token}}\n\n{{link}}",
        ]
      ) {
        const refused = await call("action", "_admin/settings:set", { changes: { mailReset: text } });
        assert.deepEqual([refused.status, refused.code], [400, "invalid_setting"], text);
        const unseen = await call("action", "_admin/settings:previewMail", { kind: "reset", text });
        assert.deepEqual([unseen.status, unseen.code], [400, "invalid_setting"], text);
      }
      await set({ mailReset: null });
      assert.equal(
        (await ok("action", "_admin/settings:previewMail", { kind: "reset" })).subject,
        "Reset your password",
      );
    },
  );

  await t.step(
    "[SE10] providers are configured at runtime, their secrets encrypted individually",
    async () => {
      await using op = await startOpenIdServer();
      op.serve([`${server.url}/api/auth/oauth/work/callback`]);
      const work = {
        preset: "oidc",
        issuer: op.issuer,
        clientId: "app",
        clientSecret: { secret: openIdSecret },
      };
      const providers = async () => (await (await fetch(`${server.url}/api/auth/providers`)).json()).oauth;
      const signIn = async () => {
        const app = `${server.url}/app`;
        const landed = await follow(
          `${server.url}/api/auth/oauth/work?redirect_to=${encodeURIComponent(app)}`,
          app,
        );
        return new URLSearchParams(landed.hash.slice(1));
      };
      await set({ authRedirectUrl: `${server.url}/app` });
      assert.deepEqual(await set({ authConfig: JSON.stringify({ providers: { work } }) }), {
        overridden: [],
      });
      assert.deepEqual(await providers(), ["work"]);
      assert.ok((await signIn()).get("svc_user_id"), "the secret is the one that was entered");

      // A displayed value can be saved unchanged and keeps the secret.
      const { text, kind, unreadable } = await setting("authConfig");
      assert.deepEqual([kind, unreadable, text.includes(openIdSecret)], ["long", false, false]);
      const shown = JSON.parse(text);
      assert.match(shown.providers.work.clientSecret.sealed, /^[\w-]{40,}$/);
      shown.providers.home = shown.providers.work;
      await set({ authConfig: JSON.stringify(shown) });
      assert.deepEqual(await providers(), ["work", "home"]);
      const { page } = await ok("query", "_admin/audit:list", {
        paginationOpts: { cursor: null, numItems: 5 },
      });
      assert.match(page[0].changes[0].after, /"sealed": "…"/);
      assert.ok(!JSON.stringify(page).includes(openIdSecret));

      for (
        const [wrong, message] of [
          ["[]", /expected JSON such as/],
          ["{", /expected JSON such as/],
          [JSON.stringify({ providers: { nobody: {} } }), /providers\.nobody: unknown preset/],
          [
            JSON.stringify({ providers: { work: { ...work, issuer: "http://id.example.com" } } }),
            /providers\.work\.issuer/,
          ],
          // Administrators have no access to the machine's environment and files.
          [
            JSON.stringify({
              providers: { work: { ...work, clientSecret: { env: "SYNCLINE_S3_SECRET_ACCESS_KEY" } } },
            }),
            /clientSecret: expected/,
          ],
          [
            JSON.stringify({ providers: { work: { ...work, clientSecret: { file: "/etc/hostname" } } } }),
            /clientSecret: expected/,
          ],
          [
            JSON.stringify({ providers: { work: { ...work, clientSecret: { sealed: "A".repeat(60) } } } }),
            /enter the secret again/,
          ],
        ] as const
      ) {
        const refused = await call("action", "_admin/settings:set", { changes: { authConfig: wrong } });
        assert.deepEqual([refused.status, refused.code], [400, "invalid_setting"], wrong);
        assert.match(refused.message ?? "", message);
      }
      assert.deepEqual(await providers(), ["work", "home"]);

      // A stored secret must not reach another server.
      const stored = JSON.parse((await setting("authConfig")).text).providers.work;
      const change = (changes: object) =>
        call("action", "_admin/settings:set", {
          changes: { authConfig: JSON.stringify({ providers: { work: { ...stored, ...changes } } }) },
        });
      for (const moved of [{ issuer: "https://elsewhere.example.com" }, { hosts: ["id.example.com"] }]) {
        const refused = await change(moved);
        assert.deepEqual([refused.status, refused.code], [400, "invalid_setting"]);
        assert.match(refused.message ?? "", /^providers\.work\.clientSecret: enter the secret again/);
      }
      assert.equal((await change({ clientId: "other", linkByEmail: false })).status, 200);
      const entered = { issuer: "https://elsewhere.example.com", clientSecret: { secret: "new" } };
      assert.equal((await change(entered)).status, 200);
      await set({ authConfig: JSON.stringify({ providers: { work, home: work } }) });

      await server.restart();
      assert.deepEqual(await providers(), ["work", "home"]);
      await set({ authConfig: null });
      assert.deepEqual(await providers(), []);
    },
  );

  await t.step(
    "[SE3] secrets are stored encrypted, never shown, and entered again after a key change",
    async () => {
      await set({ s3SecretAccessKey: "very secret indeed", backupKeep: "3" });
      const { secret, text, set: isSet, unreadable } = await setting("s3SecretAccessKey");
      assert.deepEqual([secret, text, isSet, unreadable], [true, null, true, false]);
      const { page } = await ok("query", "_admin/audit:list", {
        paginationOpts: { cursor: null, numItems: 200 },
      });
      assert.deepEqual(page[0].changes, [
        { setting: "s3SecretAccessKey", before: null, after: "(secret)" },
        { setting: "backupKeep", before: null, after: "3" },
      ]);
      assert.ok(!JSON.stringify(page).includes("very secret"));
      assert.ok(!JSON.stringify(page).includes(mail.url));
      await server.restart(async () => {
        const bytes = await Deno.readFile(join(server.dataDir, "data.db"));
        assert.ok(!new TextDecoder("latin1").decode(bytes).includes("very secret"));
      });
      assert.equal((await setting("s3SecretAccessKey")).unreadable, false);
      assert.equal((await setting("backupKeep")).source, "setting", "settings outlive a restart");
      await server.restart(() => Deno.remove(join(server.dataDir, "auth_secret.key")));
      const again = await world.signInAdmin("root@example.com");
      const after = await ok("query", "_admin/settings:list", {}, again.accessToken);
      const found = after.find(({ name }: { name: string }) => name === "s3SecretAccessKey");
      assert.deepEqual([found.set, found.unreadable, found.source], [true, true, "default"]);
      await ok(
        "action",
        "_admin/settings:set",
        { changes: { s3SecretAccessKey: "entered again" } },
        again.accessToken,
      );
    },
  );
  await Deno.remove(folder, { recursive: true });
});

Deno.test("[SE3] an encrypted secret can be decrypted with its key and name only", () => {
  const [key, name] = [new Uint8Array(32).fill(1), "smtpUrl"];
  const sealed = encryptSecret("secret", { key, name });
  assert.equal(decryptSecret(sealed, { key, name }), "secret");
  assert.notEqual(encryptSecret("secret", { key, name }), sealed, "equal secrets do not look equal");
  assert.equal(decryptSecret(sealed, { key: new Uint8Array(32).fill(2), name }), null);
  assert.equal(decryptSecret(sealed, { key, name: "other" }), null);
  assert.equal(decryptSecret(`${sealed[0] === "A" ? "B" : "A"}${sealed.slice(1)}`, { key, name }), null);
  for (const damaged of ["", "x", sealed.slice(4)]) assert.equal(decryptSecret(damaged, { key, name }), null);
});

Deno.test("[SE2] the providers file and the mail folder take precedence over their settings", () => {
  const values = Object.fromEntries(
    optionsOf("serve").map(([name, { default: value }]) => [name, value]),
  ) as unknown as ServeOptions;
  const given = {
    values: { ...values, authConfig: { kind: "file", path: "auth.json" } as const, mailTemplates: "mails" },
    explicit: new Map(
      [
        ["authConfig", { by: "flag", text: "auth.json" }] as const,
        ["mailTemplates", { by: "env", text: "mails" }] as const,
        ["smtpUrl", { by: "env", text: "smtp://user:secret@mail.example.com" }] as const,
      ],
    ),
  };
  const live = liveConfig(given, new Map([["authConfig", "{}"], ["mailReset", "Subject: s\n\n{{code}}"]]));
  assert.equal(live.accounts.authConfig?.kind, "file");
  assert.deepEqual(live.accounts.mailTexts, {});
  const specs = new Map(settingSpecs(given).map((spec) => [spec.name, spec.given?.by ?? null]));
  const mailServer = settingSpecs(given).find(({ name }) => name === "smtpUrl");
  assert.equal(mailServer?.given?.text, "smtp://user@mail.example.com");
  assert.deepEqual([specs.get("authConfig"), specs.get("mailReset"), specs.get("logKeep")], [
    "flag",
    "env",
    null,
  ]);
  const free = liveConfig(
    { values, explicit: new Map() },
    new Map([["authConfig", "{}"], ["logKeep", "2d"]]),
  );
  assert.deepEqual(free.accounts.authConfig, { kind: "text", text: "{}" });
  assert.deepEqual(free.executionLog, { keepMs: 2 * 86_400_000, bytesMax: values.logMaxSize });
});
