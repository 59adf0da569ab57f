import assert from "node:assert/strict";
import type { EndedSession } from "../../../mod/auth/authenticator.ts";
import { externalLimits } from "../../../mod/auth/limits.ts";
import { authEventArgs, createFunctions, UserError } from "../../../mod/functions/api/mod.ts";
import { until } from "../../support/waiting.ts";
import { signed } from "../support/stand_in.ts";
import {
  brokenKeySets,
  issuer,
  keyFault,
  keys,
  now,
  setUp,
  SHORT_REQUEST_MS,
  tokenVectors,
} from "./token_vectors.ts";

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

Deno.test("XI1 XI3 an access token may declare its type, and its key may be the only candidate", async () => {
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

Deno.test("XI2 XI3 XI4 XI5 XI6 tokens that are not valid are refused, each with its text, and leave no user", async (t) => {
  await using shared = await setUp();
  const keySet = shared.answer;
  for (const { name, token, error } of tokenVectors) {
    await t.step(name, async () => {
      // Each as if it were the first, because the issuer's keys are cached for less than this.
      shared.accounts.clock.now += externalLimits.keysFreshMs + 1;
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

Deno.test("XI3 a new key of the set is fetched immediately, unknown key ids only at a limited rate", async () => {
  await using setup = await setUp();
  const { burst, perMinute } = externalLimits.missedKeyFetches;
  const fetches = () => setup.asked.filter((url) => url.endsWith("/keys")).length;
  const made = async (name: string) => {
    const token = await signed(setup.claims(), keys.rsa, { kid: `made up ${name}` });
    assert.deepEqual(await setup.verify(token), refused(keyFault));
  };
  await made("while nothing is known");
  assert.equal(fetches(), 1, "what has just come is not asked for again");
  assert.equal((await setup.verify(await signed(setup.claims(), keys.rsa))).ok, true);
  setup.answer = () => Response.json({ keys: [keys.next.jwk] });
  const tokens = Array.from({ length: 20 }, () => signed(setup.claims(), keys.next));
  const verified = await Promise.all((await Promise.all(tokens)).map((token) => setup.verify(token)));
  assert.ok(verified.every(({ ok }) => ok));
  assert.equal(fetches(), 2, "one request for all of them");
  assert.deepEqual(await setup.verify(await signed(setup.claims(), keys.rsa)), refused(keyFault));
  for (let token = 0; token < 50; token++) await made(String(token));
  assert.equal(fetches(), 1 + burst);
  setup.accounts.clock.now += 60_000 / perMinute;
  for (let token = 0; token < 50; token++) await made(`later ${token}`);
  assert.equal(fetches(), 2 + burst);
});

Deno.test("XI3 while an issuer's keys are unavailable, tokens are refused with a retryable error and retries get rarer", async (t) => {
  for (const [what, answer] of Object.entries(brokenKeySets)) {
    await t.step(what, async () => {
      await using setup = await setUp(what === "slow" ? { requestMs: SHORT_REQUEST_MS } : {});
      const works = setup.answer;
      setup.answer = answer;
      const token = await signed(setup.claims(), keys.rsa);
      await assert.rejects(setup.verify(token), { code: "unavailable" });
      const asked = setup.asked.length;
      for (let at = 0; at < 20; at++) await assert.rejects(setup.verify(token), { code: "unavailable" });
      assert.equal(setup.asked.length, asked, "asked again at once");
      setup.answer = works;
      setup.accounts.clock.now += externalLimits.retryMs;
      assert.equal((await setup.verify(token)).ok, true);
      assert.deepEqual(setup.asked.filter((url) => !url.startsWith(issuer)), []);
    });
  }
});

Deno.test("XI3 known keys remain valid for a day while the issuer is down", async () => {
  await using setup = await setUp();
  await setup.verify(await signed(setup.claims(), keys.rsa));
  setup.answer = () => Promise.reject(new TypeError("error sending request"));
  setup.accounts.clock.now += externalLimits.keysStaleMsMax - 1;
  assert.equal((await setup.verify(await signed(setup.claims(), keys.rsa))).ok, true);
  setup.accounts.clock.now += externalLimits.retryMsMax;
  await assert.rejects(setup.verify(await signed(setup.claims(), keys.rsa)), { code: "unavailable" });
});

Deno.test("XI2 an issuer's document may not be another's, nor lead to hosts that are not configured", async () => {
  await using setup = await setUp();
  const other = await signed(setup.claims({ iss: "https://other.example.com" }), keys.rsa);
  await assert.rejects(setup.verify(other), { code: "unavailable" });
  assert.deepEqual(setup.asked, ["https://other.example.com/.well-known/openid-configuration"]);
});

Deno.test("XI3 a configured key address disables discovery", async () => {
  await using setup = await setUp({ fields: { keys: `${issuer}/keys` } });
  assert.equal((await setup.verify(await signed(setup.claims(), keys.rsa))).ok, true);
  assert.deepEqual(setup.asked, [`${issuer}/keys`]);
});

Deno.test("XI7 each subject is a user, and the same subject of another issuer is another user", async () => {
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

Deno.test("XI7 an address identifies a user only if both sides verified it and the operator allowed it", async () => {
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

Deno.test("XI8 a user deleted while commits were missed is reported by the recheck", async () => {
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
  // Sessions of the user are looked up separately.
  assert.deepEqual(ends, [{ principal: `user:${userId}`, withoutSession: true }]);
  assert.equal(
    (await accounts.identityOf(await signed(setup.claims({ sub: "bob" }), keys.rsa))).userId,
    kept.userId,
  );
});

Deno.test("XI9 a hanging issuer delays no token with a known key, and its late response is used", async () => {
  await using setup = await setUp();
  const known = await signed(setup.claims(), keys.rsa);
  await setup.verify(known);
  const asked = Promise.withResolvers<void>();
  const late = Promise.withResolvers<Response>();
  setup.answer = () => {
    asked.resolve();
    return late.promise;
  };
  setup.accounts.clock.now += externalLimits.keysFreshMs;
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
  // A removed key is invalid when the issuer's new keys are known.
  await until(async () => {
    const verified = await setup.verify(await signed(setup.claims(), keys.ec));
    return !verified.ok && verified.error === keyFault;
  });
});

Deno.test("XI9 keys older than a day are not used, however slow the issuer is", async () => {
  await using setup = await setUp({ requestMs: SHORT_REQUEST_MS });
  await setup.verify(await signed(setup.claims(), keys.rsa));
  setup.answer = () => new Promise(() => {});
  setup.accounts.clock.now += externalLimits.keysStaleMsMax;
  await assert.rejects(setup.verify(await signed(setup.claims(), keys.rsa)), { code: "unavailable" });
});

Deno.test("XI10 a subject refused during the lookup of another of its tokens causes no second mutation", async () => {
  let asked = 0;
  const hook = createFunctions({ tables: {} }).internalMutation({
    args: authEventArgs,
    handler: () => {
      asked++;
      throw new UserError("not_invited", "Ask for an invitation");
    },
  });
  await using setup = await setUp({ app: { tables: {}, functions: { "auth:onUserCreated": hook } } });
  const tokens = await Promise.all([1, 2].map(() => signed(setup.claims({ sub: "mallory" }), keys.ed)));
  const { port } = setup.accounts;
  /** Pauses the next call of a kind. Returns a promise for its start and a function that continues it. */
  const hold = (kind: "mutate" | "query") => {
    const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const run = port[kind].bind(port) as (call: unknown) => Promise<never>;
    port[kind] = async (call: unknown) => {
      const answer = await run(call);
      begun.resolve();
      await held.promise;
      return answer;
    };
    return { begun: begun.promise, release: () => held.resolve() };
  };
  const mutation = hold("mutate");
  const first = setup.verify(tokens[0] ?? "");
  await mutation.begun;
  const lookup = hold("query");
  const second = setup.verify(tokens[1] ?? "");
  await lookup.begun;
  mutation.release();
  assert.equal((await first).ok, false);
  lookup.release();
  assert.equal((await second).ok, false);
  assert.equal(asked, 1);
});

Deno.test("XI10 a subject that the app refuses causes one mutation in ten seconds, and is accepted once it has a user", async () => {
  let asked = 0;
  let refuses = true;
  const app = createFunctions({ tables: {} });
  const hook = app.internalMutation({
    args: authEventArgs,
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
  setup.accounts.clock.now += externalLimits.refusalKeptMs + 1;
  refuses = false;
  assert.equal(await verify("mallory"), true);
  // A subject that got a user by other means in the meantime is accepted.
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
