import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHmac, createPublicKey, type JsonWebKey } from "node:crypto";
import type { EndedSession } from "../../../mod/auth/authenticator.ts";
import { presetParts, readAuthConfig } from "../../../mod/auth/mod.ts";
import { othersLimits } from "../../../mod/auth/limits.ts";
import { Refusals } from "../../../mod/auth/issuers/refusals.ts";
import { createFunctions, UserError, userEvent } from "../../../mod/functions/api/mod.ts";
import { until } from "../../support/waiting.ts";
import type { AppParts } from "../support/in_process_port.ts";
import { part, signed, type SigningKey, signingKey, world } from "../support/stand_in.ts";
import { startTestAccounts, type TestAccounts } from "../support/test_accounts.ts";

const issuer = "https://id.example.com";

const keys = {
  rsa: await signingKey("RS256", "rsa"),
  ec: await signingKey("ES256", "ec"),
  ed: await signingKey("EdDSA", "ed"),
  next: await signingKey("RS256", "next"),
  stranger: await signingKey("RS256", "rsa"),
  long: await signingKey("RS512", "long"),
};

interface Setup extends AsyncDisposable {
  readonly accounts: TestAccounts;
  readonly asked: string[];
  /** What the issuer answers when asked for its keys. */
  answer: () => Response | Promise<Response>;
  verify(token: string): ReturnType<TestAccounts["service"]["authenticator"]["verify"]>;
  claims(further?: Record<string, unknown>): Record<string, unknown>;
}

async function setUp(
  { linkByEmail = false, fields = {}, signups = true, app, requestMs = 200 }: {
    linkByEmail?: boolean;
    fields?: Record<string, unknown>;
    signups?: boolean;
    app?: AppParts;
    requestMs?: number;
  } = {},
): Promise<Setup> {
  const keySet = () => Response.json({ keys: [keys.rsa, keys.ec, keys.ed].map(({ jwk }) => jwk) });
  const outside = world({
    "id.example.com": ({ url }) =>
      url === `${issuer}/.well-known/openid-configuration`
        ? Response.json({ issuer, jwks_uri: `${issuer}/keys` })
        : setup.answer(),
    "other.example.com": () =>
      Response.json({ issuer: "https://other.example.com", jwks_uri: `${issuer}/keys` }),
  });
  const config = {
    issuers: [
      { issuer, audience: ["app", "app-2"], linkByEmail, ...fields },
      { issuer: "https://other.example.com", audience: "app" },
    ],
  };
  const accounts = await startTestAccounts({
    signups,
    ...(app && { app }),
    others: (now) =>
      readAuthConfig(JSON.stringify(config), {
        sources: { env: () => undefined, readFile: () => Promise.reject(new Error("no files")) },
        parts: presetParts({ now, fetch: outside.fetch, requestMs }),
      }),
  });
  const setup: Setup = {
    accounts,
    asked: outside.asked,
    answer: keySet,
    verify: (token) => accounts.service.authenticator.verify(token),
    claims: (further = {}) => {
      const now = Math.floor(accounts.clock.now / 1000);
      return { iss: issuer, sub: "ann", aud: "app", iat: now, exp: now + 600, ...further };
    },
    [Symbol.asyncDispose]: () => accounts[Symbol.asyncDispose](),
  };
  return setup;
}

const refused = (error: string) => ({ ok: false, error });

for (const key of [keys.rsa, keys.ec, keys.ed]) {
  const name =
    `XI1 XI3 XI7 a token signed with ${key.alg} is its subject's, a user made on first sight, without a session`;
  Deno.test(name, async () => {
    await using setup = await setUp();
    const claims = setup.claims({ scope: "read" });
    const verified = await setup.verify(await signed(claims, key));
    const [user, ...more] = setup.accounts.port.rows("_users");
    assert.deepEqual(more, []);
    assert.deepEqual(verified, {
      ok: true,
      identity: {
        principal: `user:${user?.["_id"]}`,
        userId: user?.["_id"],
        adminId: null,
        sessionId: null,
        claims,
      },
      expiresAt: Number(claims["exp"]) * 1000,
    });
    await setup.verify(await signed(setup.claims(), keys.ec));
    await Promise.all(
      Array.from({ length: 10 }, async () => setup.verify(await signed(setup.claims(), keys.ed))),
    );
    assert.equal(setup.accounts.port.rows("_users").length, 1);
    assert.equal(setup.asked.filter((url) => url.endsWith("/keys")).length, 1);
  });
}

Deno.test("XI1 XI3 a token may say that it is an access token, and its key may be the only one it could be", async () => {
  await using setup = await setUp();
  for (const typ of ["at+jwt", "AT+JWT", "application/at+jwt", "jwt"]) {
    assert.equal((await setup.verify(await signed(setup.claims(), keys.rsa, { typ }))).ok, true, typ);
  }
  assert.equal((await setup.verify(await signed(setup.claims(), keys.ec, { kid: undefined }))).ok, true);
});

Deno.test("XI6 one of several audiences will do, on either side", async () => {
  await using setup = await setUp();
  for (const aud of ["app", "app-2", ["x", "app"]]) {
    assert.equal((await setup.verify(await signed(setup.claims({ aud }), keys.rsa))).ok, true, String(aud));
  }
});

const pem = createPublicKey({ key: keys.rsa.jwk as JsonWebKey, format: "jwk" }).export({
  type: "spki",
  format: "pem",
});

/** Signed as the service's own tokens are, with a secret that everybody knows. */
function symmetric(claims: Record<string, unknown>, secret: string | Buffer): string {
  const text = `${part({ alg: "HS256", typ: "JWT", kid: "rsa" })}.${part(claims)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

interface Vector {
  readonly name: string;
  readonly token: (setup: Setup) => string | Promise<string>;
  readonly error: string;
}

const now = (setup: Setup) => Math.floor(setup.accounts.clock.now / 1000);
const rsa = (claims: Record<string, unknown>) => (setup: Setup) => signed(setup.claims(claims), keys.rsa);
const headed = (header: Record<string, unknown>, key: SigningKey = keys.rsa) => (setup: Setup) =>
  signed(setup.claims(), key, header);
const signature = "invalid access token signature";
const malformed = "malformed access token";
const claimsFault = "invalid access token claims";
const issuerFault = "unknown token issuer";
const keyFault = "unknown token signing key";

const vectors: readonly Vector[] = [
  { name: "XI2 another issuer", token: rsa({ iss: "https://evil.example.com" }), error: issuerFault },
  { name: "XI2 the issuer with a slash behind it", token: rsa({ iss: `${issuer}/` }), error: issuerFault },
  { name: "XI2 the issuer in capitals", token: rsa({ iss: issuer.toUpperCase() }), error: issuerFault },
  { name: "XI2 the issuer below a path", token: rsa({ iss: `${issuer}/tenant` }), error: issuerFault },
  { name: "XI2 no issuer", token: rsa({ iss: undefined }), error: issuerFault },
  { name: "XI2 a list of issuers", token: rsa({ iss: [issuer] }), error: issuerFault },
  { name: "XI2 a number as issuer", token: rsa({ iss: 1 }), error: issuerFault },
  { name: "XI2 the service itself as issuer", token: rsa({ iss: "svc", typ: "access" }), error: issuerFault },
  {
    name: "XI2 the name of what every object has as issuer",
    token: rsa({ iss: "__proto__" }),
    error: issuerFault,
  },
  { name: "XI3 a key that nobody has", token: headed({ kid: "nobody" }), error: keyFault },
  { name: "XI3 an endless name of a key", token: headed({ kid: "k".repeat(4_000) }), error: keyFault },
  { name: "XI3 the name of another key", token: headed({ kid: "ec" }), error: keyFault },
  { name: "XI3 a path as name of a key", token: headed({ kid: "../../etc/passwd" }), error: keyFault },
  {
    name: "XI3 no name where two keys fit",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [keys.rsa.jwk, keys.next.jwk] });
      return signed(setup.claims(), keys.rsa, { kid: undefined });
    },
    error: keyFault,
  },
  { name: "XI3 a number as name of a key", token: headed({ kid: 1 }), error: malformed },
  { name: "XI3 a stranger's key under the right name", token: headed({}, keys.stranger), error: signature },
  {
    name: "XI3 a key for another algorithm",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [{ ...keys.rsa.jwk, alg: "RS512" }] });
      return signed(setup.claims(), keys.rsa);
    },
    error: keyFault,
  },
  {
    name: "XI3 a key for encryption",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [{ ...keys.rsa.jwk, use: "enc" }] });
      return signed(setup.claims(), keys.rsa);
    },
    error: keyFault,
  },
  {
    name: "XI3 a symmetric key in the key set",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [{ kty: "oct", k: "AAAA", kid: "rsa" }] });
      return signed(setup.claims(), keys.rsa);
    },
    error: keyFault,
  },
  {
    name: "XI3 a key without its numbers",
    token: (setup) => {
      setup.answer = () => Response.json({ keys: [{ kty: "RSA", kid: "rsa" }] });
      return signed(setup.claims(), keys.rsa);
    },
    error: keyFault,
  },
  { name: "XI3 an algorithm that is not taken", token: headed({}, keys.long), error: signature },
  {
    name: "XI3 the algorithm none",
    token: (setup) => `${part({ alg: "none" })}.${part(setup.claims())}.`,
    error: malformed,
  },
  {
    name: "XI3 the algorithm none with a signature",
    token: (setup) => `${part({ alg: "none" })}.${part(setup.claims())}.AAAA`,
    error: signature,
  },
  {
    name: "XI3 the algorithm None in capitals",
    token: (setup) => `${part({ alg: "NONE" })}.${part(setup.claims())}.AAAA`,
    error: signature,
  },
  {
    name: "XI3 AT5 the public key as a secret",
    token: (setup) => symmetric(setup.claims(), String(pem)),
    error: signature,
  },
  {
    name: "XI3 AT5 the key's modulus as a secret",
    token: (setup) => symmetric(setup.claims(), Buffer.from(keys.rsa.jwk.n ?? "", "base64url")),
    error: signature,
  },
  { name: "XI3 AT5 no secret at all", token: (setup) => symmetric(setup.claims(), ""), error: signature },
  {
    name: "XI3 a key in the header",
    token: headed({ jwk: keys.stranger.jwk }, keys.stranger),
    error: signature,
  },
  {
    name: "XI3 an address of keys in the header",
    token: headed({ jku: "https://evil.example.com/keys", kid: "evil" }, keys.stranger),
    error: keyFault,
  },
  {
    name: "XI3 a certificate's address in the header",
    token: headed({ x5u: "https://evil.example.com/cert" }, keys.stranger),
    error: signature,
  },
  {
    name: "XI3 a header that wants to be understood",
    token: headed({ crit: ["x-demo"], "x-demo": 1 }),
    error: malformed,
  },
  { name: "XI1 a token for logging out", token: headed({ typ: "logout+jwt" }), error: malformed },
  { name: "XI1 a proof of possession", token: headed({ typ: "dpop+jwt" }), error: malformed },
  {
    name: "XI1 claims of somebody else under a signature",
    token: async (setup) => {
      const [head, , tail] = (await signed(setup.claims(), keys.rsa)).split(".");
      return `${head}.${part(setup.claims({ sub: "bob" }))}.${tail}`;
    },
    error: signature,
  },
  {
    name: "XI1 a signature that was cut",
    token: async (setup) => (await signed(setup.claims(), keys.rsa)).slice(0, -4),
    error: signature,
  },
  {
    name: "XI1 a signature of another token",
    token: async (setup) => {
      const [head, body] = (await signed(setup.claims(), keys.rsa)).split(".");
      return `${head}.${body}.${(await signed(setup.claims({ sub: "bob" }), keys.rsa)).split(".")[2]}`;
    },
    error: signature,
  },
  {
    name: "XI1 four parts",
    token: async (setup) => `${await signed(setup.claims(), keys.rsa)}.AAAA`,
    error: malformed,
  },
  { name: "XI1 an encrypted token's five parts", token: () => "a.b.c.d.e", error: malformed },
  {
    name: "XI1 claims that are a list",
    token: () => `${part({ alg: "RS256", kid: "rsa" })}.${part([1])}.AAAA`,
    error: malformed,
  },
  {
    name: "XI1 a token of ten thousand characters",
    token: rsa({ more: "x".repeat(10_000) }),
    error: malformed,
  },
  {
    name: "XI4 one that has expired",
    token: (setup) => signed(setup.claims({ exp: now(setup) }), keys.rsa),
    error: "access token expired",
  },
  {
    name: "XI4 one that expired within the minute that nbf has",
    token: (setup) => signed(setup.claims({ exp: now(setup) - 30 }), keys.rsa),
    error: "access token expired",
  },
  { name: "XI4 no exp", token: rsa({ exp: undefined }), error: claimsFault },
  { name: "XI4 a text as exp", token: rsa({ exp: "9999999999" }), error: claimsFault },
  { name: "XI4 nothing as exp", token: rsa({ exp: null }), error: claimsFault },
  { name: "XI4 an exp after the end of time", token: rsa({ exp: 1e300 }), error: claimsFault },
  {
    name: "XI5 one that begins in 61 seconds",
    token: (setup) => signed(setup.claims({ nbf: now(setup) + 61 }), keys.rsa),
    error: "access token not yet valid",
  },
  { name: "XI5 a text as nbf", token: rsa({ nbf: "soon" }), error: claimsFault },
  { name: "XI6 another audience", token: rsa({ aud: "other" }), error: claimsFault },
  { name: "XI6 no audience", token: rsa({ aud: undefined }), error: claimsFault },
  { name: "XI6 an empty list of audiences", token: rsa({ aud: [] }), error: claimsFault },
  { name: "XI6 an audience that begins like ours", token: rsa({ aud: "app-3" }), error: claimsFault },
  { name: "XI6 an audience within a list within a list", token: rsa({ aud: [["app"]] }), error: claimsFault },
  { name: "XI6 no subject", token: rsa({ sub: undefined }), error: claimsFault },
  { name: "XI6 an empty subject", token: rsa({ sub: "" }), error: claimsFault },
  { name: "XI6 a number as subject", token: rsa({ sub: 7 }), error: claimsFault },
  { name: "XI6 an endless subject", token: rsa({ sub: "s".repeat(300) }), error: claimsFault },
];

Deno.test("XI2 XI3 XI4 XI5 XI6 tokens that are not valid are refused, each with its text, and leave no user", async (t) => {
  await using shared = await setUp();
  const keySet = shared.answer;
  for (const { name, token, error } of vectors) {
    await t.step(name, async () => {
      // Each as if it were the first: nothing is known of the issuer's keys for longer than this.
      shared.accounts.clock.now += othersLimits.keysFreshMs + 1;
      shared.answer = keySet;
      assert.deepEqual(await shared.verify(await token(shared)), refused(error));
      assert.deepEqual(shared.accounts.port.rows("_users"), []);
    });
  }
  assert.deepEqual(shared.asked.filter((url) => !url.startsWith(issuer)), []);
});

Deno.test("XI4 XI5 a token is good until its exp, and from a minute before its nbf", async () => {
  await using setup = await setUp();
  const at = now(setup);
  assert.equal((await setup.verify(await signed(setup.claims({ nbf: at + 60 }), keys.rsa))).ok, true);
  const token = await signed(setup.claims({ exp: at + 600 }), keys.rsa);
  setup.accounts.clock.now += 599_999;
  assert.equal((await setup.verify(token)).ok, true);
  setup.accounts.clock.now += 1;
  assert.deepEqual(await setup.verify(token), refused("access token expired"));
});

Deno.test("XI3 a key that is new in the set is fetched, but for unknown names only every 30 seconds", async () => {
  await using setup = await setUp();
  const fetches = () => setup.asked.filter((url) => url.endsWith("/keys")).length;
  await setup.verify(await signed(setup.claims(), keys.rsa));
  setup.answer = () => Response.json({ keys: [keys.next.jwk] });
  assert.deepEqual(await setup.verify(await signed(setup.claims(), keys.next)), refused(keyFault));
  assert.equal(fetches(), 1);
  setup.accounts.clock.now += othersLimits.keysCooldownMs;
  assert.equal((await setup.verify(await signed(setup.claims(), keys.next))).ok, true);
  assert.deepEqual(await setup.verify(await signed(setup.claims(), keys.rsa)), refused(keyFault));
  for (let token = 0; token < 50; token++) {
    await setup.verify(await signed(setup.claims(), keys.rsa, { kid: `made up ${token}` }));
  }
  assert.equal(fetches(), 2);
});

const broken: Readonly<Record<string, () => Response | Promise<Response>>> = {
  "down": () => Promise.reject(new TypeError("error sending request")),
  "slow": () => new Promise(() => {}),
  "10 MB long": () => new Response(new Uint8Array(10 << 20).fill(32)),
  "endless": () =>
    new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) })),
  "an error": () => new Response("no", { status: 500 }),
  "no JSON": () => new Response("<html>"),
  "no key set": () => Response.json({ keys: "none" }),
  "a set of ten thousand keys": () => Response.json({ keys: Array(10_000).fill(keys.rsa.jwk) }),
  "a redirect into the network behind": () => Response.redirect("http://169.254.169.254/latest/", 302),
};

Deno.test("XI3 while an issuer's keys cannot be had nothing is accepted, nothing refused for good, and it is asked ever more seldom", async (t) => {
  for (const [what, answer] of Object.entries(broken)) {
    await t.step(what, async () => {
      await using setup = await setUp();
      const works = setup.answer;
      setup.answer = answer;
      const token = await signed(setup.claims(), keys.rsa);
      await assert.rejects(setup.verify(token), { code: "unavailable" });
      const asked = setup.asked.length;
      for (let at = 0; at < 20; at++) await assert.rejects(setup.verify(token), { code: "unavailable" });
      assert.equal(setup.asked.length, asked, "asked again at once");
      setup.answer = works;
      setup.accounts.clock.now += othersLimits.retryMs;
      assert.equal((await setup.verify(token)).ok, true);
      assert.deepEqual(setup.asked.filter((url) => !url.startsWith(issuer)), []);
    });
  }
});

Deno.test("XI3 keys that are known go on counting for a day while the issuer is down", async () => {
  await using setup = await setUp();
  await setup.verify(await signed(setup.claims(), keys.rsa));
  setup.answer = () => Promise.reject(new TypeError("error sending request"));
  setup.accounts.clock.now += othersLimits.keysStaleMsMax - 1;
  assert.equal((await setup.verify(await signed(setup.claims(), keys.rsa))).ok, true);
  setup.accounts.clock.now += othersLimits.retryMsMax;
  await assert.rejects(setup.verify(await signed(setup.claims(), keys.rsa)), { code: "unavailable" });
});

Deno.test("XI2 an issuer's document may not be another's, nor lead to hosts that are not configured", async () => {
  await using setup = await setUp();
  const other = await signed(setup.claims({ iss: "https://other.example.com" }), keys.rsa);
  await assert.rejects(setup.verify(other), { code: "unavailable" });
  assert.deepEqual(setup.asked, ["https://other.example.com/.well-known/openid-configuration"]);
});

Deno.test("XI3 with an address of the keys there is no discovery", async () => {
  await using setup = await setUp({ fields: { keys: `${issuer}/keys` } });
  assert.equal((await setup.verify(await signed(setup.claims(), keys.rsa))).ok, true);
  assert.deepEqual(setup.asked, [`${issuer}/keys`]);
});

Deno.test("XI7 subjects are users of their own, and one of another issuer is somebody else", async () => {
  await using setup = await setUp({ signups: false });
  const userOf = async (claims: Record<string, unknown>) => {
    const verified = await setup.verify(await signed(setup.claims(claims), keys.rsa));
    assert.ok(verified.ok);
    return verified.identity.userId;
  };
  const ann = await userOf({});
  assert.equal(await userOf({ email: "ann@example.com", email_verified: true }), ann);
  assert.notEqual(await userOf({ sub: "bob" }), ann);
  assert.notEqual(await userOf({ sub: "Ann" }), ann);
});

Deno.test("XI7 an address makes a user known only where both sides verified it and the operator said so", async () => {
  for (
    const [linkByEmail, verified, same] of [[true, true, true], [true, false, false], [false, true, false]]
  ) {
    await using setup = await setUp({ linkByEmail: linkByEmail === true });
    await setup.accounts.post("/magic/request", { email: "ann@example.com" });
    const mail = await setup.accounts.mailTo("ann@example.com");
    const { userId } = (await setup.accounts.post("/magic/verify", { token: mail?.token })).body;
    const claims = setup.claims({ email: "Ann@Example.com", email_verified: verified });
    const checked = await setup.verify(await signed(claims, keys.rsa));
    assert.ok(checked.ok);
    assert.equal(checked.identity.userId === userId, same, `${linkByEmail} ${verified}`);
  }
});

for (const byHand of [true, false]) {
  const name = `XI8 when the user of a subject is deleted ${
    byHand ? "by hand" : "by the function"
  }, its tokens' sockets end`;
  Deno.test(name, async () => {
    await using setup = await setUp();
    const { accounts } = setup;
    const ends: EndedSession[] = [];
    accounts.service.authenticator.onSessionEnd((end) => ends.push(end));
    const token = await signed(setup.claims(), keys.rsa);
    const { userId } = await accounts.identityOf(token);
    if (byHand) await accounts.port.deleteRow(userId ?? "");
    else {
      const identity = { principal: null, userId: null, adminId: null, sessionId: null };
      await accounts.port.mutate({
        udfPath: "_system/auth:deleteUser",
        args: { userId },
        identity,
        origin: "system",
      });
      assert.deepEqual(accounts.port.rows("_identities"), []);
    }
    assert.ok(ends.some((end) => "principal" in end && end.principal === `user:${userId}`));
    const after = await accounts.identityOf(token);
    assert.notEqual(after.userId, userId, "a subject whose user was deleted is a new user");
  });
}

Deno.test("XI8 a user deleted while nobody was listening is told of when sessions are looked up again", async () => {
  await using setup = await setUp();
  const { accounts } = setup;
  const token = await signed(setup.claims(), keys.rsa);
  const { userId } = await accounts.identityOf(token);
  const kept = await accounts.identityOf(await signed(setup.claims({ sub: "bob" }), keys.rsa));
  const ends: EndedSession[] = [];
  const { authenticator } = accounts.service;
  authenticator.onSessionEnd((end) => ends.push(end));
  const apply = authenticator.applyCommits;
  authenticator.applyCommits = () => {};
  await accounts.port.deleteRow(userId ?? "");
  authenticator.applyCommits = apply;
  await authenticator.recheck();
  // Sessions of the user are looked up for themselves.
  assert.deepEqual(ends, [{ principal: `user:${userId}`, withoutSession: true }]);
  assert.equal(
    (await accounts.identityOf(await signed(setup.claims({ sub: "bob" }), keys.rsa))).userId,
    kept.userId,
  );
});

Deno.test("XI9 an issuer that hangs stalls nobody whose key is known, and answers late rather than never", async () => {
  await using setup = await setUp({ requestMs: 60_000 });
  const known = await signed(setup.claims(), keys.rsa);
  await setup.verify(known);
  const asked = Promise.withResolvers<void>();
  const late = Promise.withResolvers<Response>();
  setup.answer = () => {
    asked.resolve();
    return late.promise;
  };
  setup.accounts.clock.now += othersLimits.keysFreshMs;
  // The issuer does not answer until these are served.
  const first = setup.verify(await signed(setup.claims(), keys.rsa));
  await asked.promise;
  const more = Array.from(
    { length: 20 },
    async () => await setup.verify(await signed(setup.claims(), keys.ec)),
  );
  for (const verified of await Promise.all([first, ...more])) assert.equal(verified.ok, true);
  assert.equal(setup.asked.filter((url) => url.endsWith("/keys")).length, 2, "one request for all of them");
  late.resolve(Response.json({ keys: [keys.rsa.jwk] }));
  // A key that was taken out counts no more, once the issuer has said so.
  await until(async () => {
    const verified = await setup.verify(await signed(setup.claims(), keys.ec));
    return !verified.ok && verified.error === keyFault;
  });
});

Deno.test("XI9 keys older than a day are not used, however long their issuer takes", async () => {
  await using setup = await setUp();
  await setup.verify(await signed(setup.claims(), keys.rsa));
  setup.answer = () => new Promise(() => {});
  setup.accounts.clock.now += othersLimits.keysStaleMsMax;
  await assert.rejects(setup.verify(await signed(setup.claims(), keys.rsa)), { code: "unavailable" });
});

Deno.test("XI10 a subject that the app refuses is asked about once in ten seconds, and is let in when it is known", async () => {
  let asked = 0;
  let refuses = true;
  const app = createFunctions({ tables: {} });
  const hook = app.internalMutation({
    args: userEvent,
    handler: () => {
      asked++;
      if (refuses) throw new UserError("not_invited", "Ask for an invitation");
    },
  });
  await using setup = await setUp({ app: { tables: {}, functions: { "auth:onUserCreated": hook } } });
  const verify = async (sub: string) => (await setup.verify(await signed(setup.claims({ sub }), keys.ed))).ok;
  const answers = await Promise.all(Array.from({ length: 20 }, () => verify("mallory")));
  for (let at = 0; at < 20; at++) answers.push(await verify("mallory"));
  assert.deepEqual(new Set(answers), new Set([false]));
  assert.equal(asked, 1);
  assert.equal(await verify("trudy"), false);
  assert.equal(asked, 2, "each subject is one of its own");
  setup.accounts.clock.now += othersLimits.refusalKeptMs;
  refuses = false;
  assert.equal(await verify("mallory"), true);
  // Whoever is known by another way meanwhile is not kept out.
  refuses = true;
  assert.equal(await verify("eve"), false);
  refuses = false;
  await setup.accounts.port.mutate({
    udfPath: "_system/auth:admitSubject",
    args: {
      arrival: {
        identity: { issuer, subject: "eve" },
        signups: true,
        linkByEmail: false,
        takenEmail: "without",
      },
    },
    identity: { principal: null, userId: null, adminId: null, sessionId: null },
    origin: "system",
  });
  assert.equal(await verify("eve"), true);
});

Deno.test("XI10 what is remembered of refusals is bounded, and the oldest gives way", () => {
  let now = 0;
  const refusals = new Refusals(() => now);
  for (let at = 0; at <= othersLimits.refusalsKeptMax; at++) refusals.add(`subject ${at}`);
  assert.equal(refusals.size, othersLimits.refusalsKeptMax);
  assert.equal(refusals.has("subject 0"), false);
  assert.equal(refusals.has("subject 1"), true);
  now += othersLimits.refusalKeptMs;
  assert.equal(refusals.has("subject 1"), false);
});
