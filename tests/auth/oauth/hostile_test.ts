/** Attacks on provider sign-ins (hostile_vectors.ts): none of them signs a user in. */
import assert from "node:assert/strict";
import { appUrl, fragmentOf, startTestSignIns } from "../support/test_sign_ins.ts";
import { addressVectors, ann, answerVectors, signUp, stateVectors, verifiedUser } from "./hostile_vectors.ts";

Deno.test("OA7 OA8 OA9 a callback without a sign-in of this browser gets plain text and status 400, and changes nothing", async (t) => {
  for (const { name, provider = "github", alter } of stateVectors) {
    await t.step(name, async () => {
      await using signIns = await startTestSignIns();
      const started = await signIns.begin(provider);
      const good = signIns.at[provider].agree(started.location, ann);
      const altered = await alter({ signIns, started, parameters: new URLSearchParams(good) });
      const { parameters = good, cookie, provider: to = provider, form } = {
        cookie: started.cookie,
        ...altered,
      };
      const answer = await signIns.back(to, parameters, {
        ...(cookie !== undefined && { cookie }),
        ...(form !== undefined && { form }),
      });
      assert.equal(answer.status, 400);
      assert.match(answer.headers.get("content-type") ?? "", /^text\/plain/i);
      assert.equal(answer.headers.get("location"), null);
      assert.deepEqual(signIns.accounts.port.rows("_sessions"), []);
      assert.deepEqual(
        signIns.asked.filter((url) => /token$/.test(url)),
        [],
        "the code was shown to a provider",
      );
      if (signIns.accounts.port.rows("_oauth_flows").length === 0) return;
      const rightly = await signIns.back(provider, good, started);
      assert.equal(rightly.status, name.startsWith("OA8") ? 400 : provider === "apple" ? 303 : 302);
    });
  }
});

Deno.test("OA2 OA3 OA7 OA14 answers that are not the provider's, not for us or not of this sign-in are refused in the app's address", async (t) => {
  for (const vector of answerVectors) {
    const { name, provider = "work", overrides, parameters, code = "provider_error", requestMs } = vector;
    await t.step(name, async () => {
      await using signIns = await startTestSignIns({ requestMs });
      const started = await signIns.begin(provider);
      const good = signIns.at[provider].agree(started.location, ann);
      const altered = await parameters?.(new URLSearchParams(good), signIns) ?? good;
      const sessions = signIns.accounts.port.rows("_sessions").length;
      signIns.at[provider].overrides = await overrides?.(signIns, started) ?? {};
      const fragment = fragmentOf(await signIns.back(provider, altered, started));
      assert.equal(fragment.get("svc_error"), code, signIns.accounts.logged.join("\n"));
      assert.equal(fragment.get("svc_access_token"), null);
      assert.equal(signIns.accounts.port.rows("_sessions").length, sessions);
      assert.deepEqual(signIns.accounts.port.rows("_users").filter((user) => user["name"] === "Ann"), []);
      assert.deepEqual(
        signIns.asked.filter((url) => url.startsWith("https://evil.test") || url.startsWith("http:")),
        [],
      );
      // It cannot be tried again either.
      signIns.at[provider].overrides = {};
      assert.equal((await signIns.back(provider, good, started)).status, 400);
    });
  }
});

Deno.test("OL1 OL2 OL3 OL5 an unverified address signs in to no existing account", async (t) => {
  for (const { name, arrange, by, person, error } of addressVectors) {
    await t.step(name, async () => {
      await using signIns = await startTestSignIns();
      const owner = await arrange(signIns);
      const fragment = await signIns.signIn(by, person);
      assert.equal(fragment.get("svc_error"), error ?? null);
      if (error === undefined) assert.notEqual(fragment.get("svc_user_id"), owner);
      const holders = signIns.accounts.port.rows("_users").filter((user) =>
        user["email"] === "ann@example.com"
      );
      assert.ok(holders.every((user) => user["_id"] === owner));
    });
  }
});

Deno.test("OL2 an address verified by both sides links to its user, and the password and sessions remain", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const userId = await verifiedUser(signIns);
  assert.equal((await signIns.signIn("work", ann)).get("svc_user_id"), userId);
  assert.equal((await signIns.signIn("github", ann)).get("svc_user_id"), userId);
  assert.equal((await signIns.signIn("github", { id: ann.id })).get("svc_user_id"), userId);
  assert.equal(accounts.port.rows("_sessions").length, 4);
  assert.equal(accounts.port.rows("_users").length, 1);
});

Deno.test("OL4 an attacker with an account for a victim's address loses all access when the victim signs in", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const squatter = await signUp(signIns);
  const stolen = await accounts.post("/signin", { email: ann.email, password: "correct horse" });
  assert.equal((await signIns.signIn("google", ann)).get("svc_user_id"), squatter);
  assert.deepEqual(await accounts.service.authenticator.verify(stolen.body.accessToken), {
    ok: false,
    error: "session has ended",
  });
  assert.equal((await accounts.post("/refresh", { refreshToken: stolen.body.refreshToken })).status, 401);
  assert.equal((await accounts.post("/signin", { email: ann.email, password: "correct horse" })).status, 401);
  assert.equal(accounts.port.rows("_users")[0]?.["emailVerified"], true);
  assert.equal(accounts.port.rows("_sessions").length, 1);
});

Deno.test("OA4 the redirect chosen at the start is used, independent of the callback", async () => {
  await using signIns = await startTestSignIns();
  const started = await signIns.begin("github", appUrl);
  const parameters = signIns.at.github.agree(started.location, ann);
  for (const name of ["redirect_to", "redirect_uri", "redirectTo", "return_to"]) {
    parameters.set(name, "https://evil.test/");
  }
  fragmentOf(await signIns.back("github", parameters, started));
});
