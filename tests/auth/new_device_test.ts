/** Mails about sign-ins from new devices. */
import assert from "node:assert/strict";
import { authLimits } from "../../mod/auth/limits.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { deviceName, deviceOf } from "../../mod/auth/user_agent.ts";
import {
  password,
  startTestAccounts,
  type TestAccounts,
  type TestAccountsOptions,
} from "./support/test_accounts.ts";
import { codeOf, email, enroll, verifiedUser } from "./support/test_factors.ts";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const NEWER_FIREFOX = FIREFOX.replaceAll("140.0", "141.0");
const IPHONE =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1";

const AGENTS: readonly (readonly [userAgent: string, name: string])[] = [
  [FIREFOX, "Firefox on Linux"],
  [IPHONE, "Safari on iPhone"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
    "Edge on Windows",
  ],
  [
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
    "Chrome on Android",
  ],
  [
    "Mozilla/5.0 (Linux; Android 14; SM-S921B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36",
    "Samsung Internet on Android",
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
    "Safari on macOS",
  ],
  [
    "Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0.7339.39 Mobile/15E148 Safari/604.1",
    "Chrome on iPad",
  ],
  [
    "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 OPR/124.0.0.0",
    "Opera on ChromeOS",
  ],
  ["curl/8.14.1", "curl"],
  ["Deno/2.9.6", "Deno"],
  ["SomethingElse (Windows)", "Windows"],
  ["", "Unknown device"],
];

for (const [userAgent, name] of AGENTS) {
  Deno.test(`AF3 ND1 a User-Agent names the device: ${name}`, () => {
    assert.equal(deviceName(deviceOf(userAgent)), name);
  });
}

/** Signs in with the password. */
async function signIn(accounts: TestAccounts, userAgent: string, at = "/signin", address = email) {
  const answer = await accounts.post(at, { email: address, password }, {
    from: address,
    headers: { "User-Agent": userAgent },
  });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

/** The devices in mails about them, in order. */
async function reported(accounts: TestAccounts): Promise<string[]> {
  await accounts.service.mailSettled();
  return accounts.mails.filter(({ subject }) => subject === "New sign-in to Test")
    .map(({ to, text }) => `${to}: ${/^(.+), \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/m.exec(text)?.[1]}`);
}

/** Accounts with a verified user. */
async function withUser(
  test: (accounts: TestAccounts, user: Awaited<ReturnType<typeof verifiedUser>>) => Promise<void>,
  options: TestAccountsOptions = {},
): Promise<void> {
  await using accounts = await startTestAccounts(options);
  await test(accounts, await verifiedUser(accounts));
}

Deno.test("ND1 ND2 only the first sign-in from another browser or system sends a mail", () =>
  withUser(async (accounts) => {
    // The sign-up was the first session, from a program without a User-Agent.
    assert.deepEqual(await reported(accounts), []);
    await signIn(accounts, FIREFOX);
    assert.deepEqual(await reported(accounts), [`${email}: Firefox on Linux`]);
    const { refreshToken } = await signIn(accounts, NEWER_FIREFOX);
    await accounts.post("/signout", { refreshToken });
    await signIn(accounts, FIREFOX);
    await signIn(accounts, IPHONE);
    assert.deepEqual(await reported(accounts), [
      `${email}: Firefox on Linux`,
      `${email}: Safari on iPhone`,
    ]);
    assert.deepEqual(
      accounts.port.rows("_devices").map(({ name }) => name).toSorted(),
      ["Firefox on Linux", "Safari on iPhone", "Unknown device"],
    );
  }));

Deno.test("ND2 sessions from before devices were recorded count as known devices", () =>
  withUser(async (accounts, { userId = "" }) => {
    await signIn(accounts, FIREFOX);
    for (const { _id } of accounts.port.rows("_devices")) await accounts.port.deleteRow(String(_id));
    await signIn(accounts, FIREFOX);
    assert.equal((await reported(accounts)).length, 1);
    await signIn(accounts, IPHONE);
    assert.equal((await reported(accounts)).length, 2);
    assert.ok(accounts.port.rows("_devices").every(({ owner }) => owner === userId));
  }));

Deno.test("ND1 every sign-in method sends it: a mail, a reset, a second step", () =>
  withUser(async (accounts, { userId: owner = "" }) => {
    await accounts.post("/magic/request", { email });
    const { token } = await accounts.mailTo(email) ?? {};
    await accounts.post("/magic/verify", { token }, { headers: { "User-Agent": FIREFOX } });
    assert.deepEqual(await reported(accounts), [`${email}: Firefox on Linux`]);
    await accounts.post("/reset/request", { email });
    const reset = await accounts.mailTo(email);
    const { body } = await accounts.post("/reset/confirm", { token: reset?.token, password }, {
      headers: { "User-Agent": "Deno/1" },
    });
    assert.deepEqual((await reported(accounts)).slice(1), [`${email}: Deno`]);
    const { secret } = await enroll(accounts, { accessToken: body.accessToken, owner });
    const first = await accounts.post("/signin", { email, password }, {
      from: email,
      headers: { "User-Agent": IPHONE },
    });
    assert.equal(first.body.errorData.code, "mfa_required");
    assert.equal((await reported(accounts)).length, 2, "the first step signs no one in");
    const { challenge } = first.body.errorData.data;
    await accounts.post("/mfa/verify", { challenge, code: codeOf(secret, accounts.clock.now) }, {
      from: email,
      headers: { "User-Agent": IPHONE },
    });
    assert.deepEqual((await reported(accounts)).slice(2), [`${email}: Safari on iPhone`]);
  }));

Deno.test("ND1 administrators get it, too", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signInAdmin("root@example.com");
  await signIn(accounts, FIREFOX, "/admin/signin", "root@example.com");
  assert.deepEqual(await reported(accounts), ["root@example.com: Firefox on Linux"]);
});

Deno.test("ND1 an address that is not verified gets no mail", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp(email);
  await signIn(accounts, FIREFOX);
  assert.deepEqual(await reported(accounts), []);
});

Deno.test("ND2 an administrator's session as the user is not a device of the user", () =>
  withUser(async (accounts, { userId = "" }) => {
    const admin = await accounts.identityOf((await accounts.signInAdmin("root@example.com")).accessToken);
    await accounts.service.sessions.impersonate({
      userId,
      adminId: admin.adminId ?? "",
      adminSession: admin.sessionId ?? "",
      lifetimeMs: 60_000,
      userAgent: FIREFOX,
    });
    assert.deepEqual(await reported(accounts), []);
    await signIn(accounts, FIREFOX);
    assert.deepEqual(await reported(accounts), [`${email}: Firefox on Linux`]);
  }));

Deno.test("ND3 requests of strangers for mail do not suppress it, and its own limit does", () =>
  withUser(async (accounts) => {
    for (let i = 0; i < 20; i++) {
      await accounts.post("/reset/request", { email }, { from: `198.51.100.${i}` });
    }
    for (const browser of ["Firefox", "Chrome", "Edg", "OPR", "Vivaldi", "Bun", "Deno"]) {
      await signIn(accounts, `${browser}/1`);
    }
    assert.deepEqual(
      await reported(accounts),
      ["Firefox", "Chrome", "Edge", "Opera", "Vivaldi"].map((name) => `${email}: ${name}`),
    );
  }));

Deno.test("ND3 without a mail server, or if turned off, sign-ins work without it", async () => {
  await withUser(async (accounts) => {
    await signIn(accounts, FIREFOX);
    assert.deepEqual(await reported(accounts), []);
  }, { deviceMail: false });
  await using accounts = await startTestAccounts({ mail: false });
  await accounts.signInAdmin("root@example.com");
  await signIn(accounts, FIREFOX, "/admin/signin", "root@example.com");
  assert.deepEqual(accounts.logged.filter((line) => line.includes("ail")), []);
});

Deno.test("ND1 the devices of an account are bounded: the least recently used one is forgotten", () =>
  withUser(async (accounts) => {
    const names = ["Firefox", "Chrome", "Edg", "OPR", "Vivaldi", "Bun", "Deno"]
      .flatMap((browser) =>
        ["iPhone", "iPad", "Android", "Windows"].map((system) => `${browser}/1 ${system}`)
      );
    for (const name of names) {
      accounts.clock.now += 60_000;
      await signIn(accounts, name);
      await signIn(accounts, FIREFOX);
    }
    const devices = accounts.port.rows("_devices").map(({ name }) => name);
    assert.equal(devices.length, authLimits.devicesPerOwnerMax);
    assert.ok(devices.includes("Firefox on Linux") && devices.includes("Deno on Windows"));
    assert.ok(!devices.includes("Firefox on iPhone"));
  }));

Deno.test("ND5 the devices of a deleted account are deleted", () =>
  withUser(async (accounts, { userId = "" }) => {
    await accounts.signUp("b@example.com");
    assert.equal(accounts.port.rows("_devices").length, 2);
    await accounts.port.mutate({
      udfPath: "_system/auth:deleteUser",
      args: { userId },
      identity: anonymous,
      origin: "system",
    });
    assert.ok(accounts.port.rows("_devices").every(({ owner }) => owner !== userId));
    assert.equal(accounts.port.rows("_devices").length, 1);
  }));

Deno.test("ND5 the proven owner of an address does not inherit the devices of another person", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp(email);
  await accounts.post("/magic/request", { email });
  const { token } = await accounts.mailTo(email) ?? {};
  await accounts.post("/magic/verify", { token }, { headers: { "User-Agent": FIREFOX } });
  assert.deepEqual(accounts.port.rows("_devices").map(({ name }) => name), ["Firefox on Linux"]);
  assert.deepEqual(await reported(accounts), []);
});

Deno.test("ND5 the devices of a deleted administrator are deleted", async () => {
  await using accounts = await startTestAccounts();
  const [root, other] = [
    await accounts.signInAdmin("root@example.com"),
    await accounts.signInAdmin("b@example.com"),
  ];
  const owners = () => accounts.port.rows("_devices").map(({ owner }) => owner);
  assert.deepEqual(owners(), [root.adminId, other.adminId]);
  await accounts.call("_admin/administrators:remove", { adminId: other.adminId }, root.accessToken);
  assert.deepEqual(owners(), [root.adminId]);
});

Deno.test("ND2 ND5 an anonymous user who signs up has no known devices yet", async () => {
  // The devices of the anonymous session do not count: another person may have given the browser that session.
  await using accounts = await startTestAccounts({ anonymous: true });
  const { body } = await accounts.post("/anonymous", {}, { headers: { "User-Agent": IPHONE } });
  await accounts.post("/magic/request", { email });
  const { token } = await accounts.mailTo(email) ?? {};
  const promoted = await accounts.post("/magic/verify", { token }, {
    bearer: body.accessToken,
    headers: { "User-Agent": FIREFOX },
  });
  assert.equal(promoted.body.userId, body.userId);
  assert.deepEqual(await reported(accounts), [], "the sign-up is the first sign-in of the account");
  await accounts.post("/magic/request", { email });
  const again = await accounts.mailTo(email);
  await accounts.post("/magic/verify", { token: again?.token }, { headers: { "User-Agent": IPHONE } });
  assert.deepEqual(await reported(accounts), [`${email}: Safari on iPhone`]);
});
