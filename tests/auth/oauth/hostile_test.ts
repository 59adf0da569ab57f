/** What somebody with bad intentions tries, as tables: nobody is signed in by any of it. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { othersLimits } from "../../../mod/auth/limits.ts";
import { part, signed, signingKey } from "../support/stand_in.ts";
import type { Bends } from "../support/stand_in_providers.ts";
import {
  appUrl,
  type Departed,
  fragmentOf,
  type ProviderName,
  startTestSignIns,
  type TestSignIns,
} from "../support/test_sign_ins.ts";

const ann = { id: "4711", email: "ann@example.com", verified: true, name: "Ann" };
const mallory = { id: "666", email: "mallory@example.com", verified: true, name: "Mallory" };

const strangers = {
  ec: await signingKey("ES256", "stranger"),
  ed: await signingKey("EdDSA", "stranger"),
};

/** Comes back with another set of parameters or another cookie than it should. */
interface StateVector {
  readonly name: string;
  readonly provider?: ProviderName;
  readonly bend: (parts: { signIns: TestSignIns; departed: Departed; parameters: URLSearchParams }) =>
    | { parameters?: URLSearchParams; cookie?: string | undefined; provider?: ProviderName; form?: boolean }
    | Promise<
      { parameters?: URLSearchParams; cookie?: string | undefined; provider?: ProviderName; form?: boolean }
    >;
}

function changed(parameters: URLSearchParams, values: Record<string, string | null>): URLSearchParams {
  const result = new URLSearchParams(parameters);
  for (const [name, value] of Object.entries(values)) {
    if (value === null) result.delete(name);
    else result.set(name, value);
  }
  return result;
}

const stateVectors: readonly StateVector[] = [
  { name: "OA7 no cookie: somebody else began it (login CSRF)", bend: () => ({ cookie: undefined }) },
  { name: "OA7 an empty cookie", bend: () => ({ cookie: "svc_oauth_state=" }) },
  {
    name: "OA7 the cookie of another sign-in",
    bend: async ({ signIns }) => ({ cookie: (await signIns.begin("github")).cookie }),
  },
  {
    name: "OA7 the state of another sign-in",
    bend: async ({ signIns, parameters }) => ({
      parameters: changed(parameters, { state: (await signIns.begin("github")).state }),
    }),
  },
  {
    name: "OA7 a cookie beside the right one",
    bend: ({ departed }) => ({ cookie: `svc_oauth_state=x; ${departed.cookie}` }),
  },
  {
    name: "OA7 the right cookie twice",
    bend: ({ departed }) => ({ cookie: `${departed.cookie}; ${departed.cookie}` }),
  },
  {
    name: "OA7 the cookie under another name",
    bend: ({ departed }) => ({ cookie: departed.cookie.replace("svc_", "svc2_") }),
  },
  {
    name: "OA7 the cookie's name in capitals",
    bend: ({ departed }) => ({ cookie: departed.cookie.replace("svc_oauth", "SVC_OAUTH") }),
  },
  { name: "OA9 no state", bend: ({ parameters }) => ({ parameters: changed(parameters, { state: null }) }) },
  {
    name: "OA9 an empty state on both sides",
    bend: ({ parameters }) => ({
      parameters: changed(parameters, { state: "" }),
      cookie: "svc_oauth_state=",
    }),
  },
  {
    name: "OA9 a made-up state on both sides",
    bend: ({ parameters }) => ({
      parameters: changed(parameters, { state: "a".repeat(43) }),
      cookie: `svc_oauth_state=${"a".repeat(43)}`,
    }),
  },
  {
    name: "OA9 the state twice",
    bend: ({ parameters, departed }) => {
      parameters.append("state", departed.state);
      return { parameters };
    },
  },
  {
    name: "OA9 the hash of the state, as it is stored",
    bend: ({ signIns, parameters }) => {
      const stored = String(signIns.accounts.port.rows("_oauth_flows")[0]?.["stateHash"]);
      return { parameters: changed(parameters, { state: stored }), cookie: `svc_oauth_state=${stored}` };
    },
  },
  {
    name: "OA9 the state cut",
    bend: ({ parameters, departed }) => ({
      parameters: changed(parameters, { state: departed.state.slice(0, -1) }),
      cookie: `svc_oauth_state=${departed.state.slice(0, -1)}`,
    }),
  },
  {
    name: "OA9 the state with a space behind it",
    bend: ({ parameters, departed }) => ({
      parameters: changed(parameters, { state: `${departed.state} ` }),
    }),
  },
  {
    name: "OA9 an endless state",
    bend: ({ parameters }) => ({ parameters: changed(parameters, { state: "a".repeat(9_000) }) }),
  },
  {
    name: "OA8 a sign-in of eleven minutes ago",
    bend: ({ signIns }) => {
      signIns.accounts.clock.now += othersLimits.flowMs + 60_000;
      return {};
    },
  },
  {
    name: "OA7 a sign-in with one provider finished at another (mix-up)",
    bend: () => ({ provider: "discord" }),
  },
  {
    name: "OA7 a sign-in with one issuer finished at another (mix-up)",
    provider: "work",
    bend: () => ({ provider: "home" }),
  },
  {
    name: "OA12 a form of the right preset for a sign-in with another",
    bend: () => ({ provider: "apple", form: true }),
  },
  {
    name: "OA7 a form without the cookie",
    provider: "apple",
    bend: () => ({ cookie: undefined, form: true }),
  },
];

Deno.test("OA7 OA8 OA9 a return that is not of this browser's sign-in gets plain text and status 400, and ends nothing", async (t) => {
  for (const { name, provider = "github", bend } of stateVectors) {
    await t.step(name, async () => {
      await using signIns = await startTestSignIns();
      const departed = await signIns.begin(provider);
      const good = signIns.at[provider].agree(departed.location, ann);
      const bent = await bend({ signIns, departed, parameters: new URLSearchParams(good) });
      const { parameters = good, cookie, provider: to = provider, form } = {
        cookie: departed.cookie,
        ...bent,
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
      const rightly = await signIns.back(provider, good, departed);
      assert.equal(rightly.status, name.startsWith("OA8") ? 400 : provider === "apple" ? 303 : 302);
    });
  }
});

/** What comes back is right, but the provider, or somebody in its place, answers otherwise than it should. */
interface AnswerVector {
  readonly name: string;
  readonly provider?: ProviderName;
  readonly bends?: (signIns: TestSignIns, departed: Departed) => Bends | Promise<Bends>;
  readonly parameters?: (
    parameters: URLSearchParams,
    signIns: TestSignIns,
  ) => URLSearchParams | Promise<URLSearchParams>;
  readonly code?: string;
}

const claims = (bent: Record<string, unknown>) => () => ({ claims: bent });
const idToken =
  (make: (signIns: TestSignIns, departed: Departed) => string | Promise<string>) =>
  async (signIns: TestSignIns, departed: Departed): Promise<Bends> => {
    const id_token = await make(signIns, departed);
    return { answer: (answer) => ({ ...answer, id_token }) };
  };

function plain(
  signIns: TestSignIns,
  departed: Departed,
  issuer = signIns.at.work.issuer,
): Record<string, unknown> {
  const now = Math.floor(signIns.accounts.clock.now / 1000);
  const nonce = new URL(departed.location).searchParams.get("nonce");
  return { iss: issuer, sub: "4711", aud: "app", iat: now, exp: now + 300, nonce };
}

const answerVectors: readonly AnswerVector[] = [
  { name: "OA14 no nonce", bends: claims({ nonce: undefined }) },
  { name: "OA14 another nonce", bends: claims({ nonce: "x".repeat(43) }) },
  { name: "OA14 an empty nonce", bends: claims({ nonce: "" }) },
  { name: "OA14 the state as nonce", bends: (_, { state }) => ({ claims: { nonce: state } }) },
  {
    name: "OA14 a list with the nonce",
    bends: (_, { location }) => ({ claims: { nonce: [new URL(location).searchParams.get("nonce")] } }),
  },
  { name: "OA14 another audience", bends: claims({ aud: "other" }) },
  { name: "OA14 no audience", bends: claims({ aud: undefined }) },
  { name: "OA14 two audiences and nobody it was given to", bends: claims({ aud: ["app", "other"] }) },
  { name: "OA14 given to somebody else", bends: claims({ aud: ["app", "other"], azp: "other" }) },
  { name: "OA14 ours, but given to somebody else", bends: claims({ azp: "other" }) },
  { name: "OA14 another issuer", bends: claims({ iss: "https://evil.test" }) },
  { name: "OA14 the issuer with a slash", bends: claims({ iss: "https://work.test/realm/" }) },
  { name: "OA14 another realm of the same host", bends: claims({ iss: "https://work.test/other" }) },
  { name: "OA14 no issuer", bends: claims({ iss: undefined }) },
  {
    name: "OA14 expired",
    bends: (signIns) => ({ claims: { exp: Math.floor(signIns.accounts.clock.now / 1000) } }),
  },
  { name: "OA14 no exp", bends: claims({ exp: undefined }) },
  { name: "OA14 a text as exp", bends: claims({ exp: "never" }) },
  {
    name: "OA14 not yet valid",
    bends: (signIns) => ({ claims: { nbf: Math.floor(signIns.accounts.clock.now / 1000) + 3_600 } }),
  },
  { name: "OA14 no subject", bends: claims({ sub: undefined }) },
  { name: "OA14 an empty subject", bends: claims({ sub: "" }) },
  { name: "OA14 a number as subject", bends: claims({ sub: 4711 }) },
  { name: "OA14 an endless subject", bends: claims({ sub: "s".repeat(300) }) },
  {
    name: "OA14 a stranger's signature",
    bends: () => ({ key: { ...strangers.ec, kid: "key of https://work.test/realm" } }),
  },
  { name: "OA14 a key nobody has", bends: () => ({ key: strangers.ec }) },
  {
    name: "OA14 a stranger's key in the header",
    bends: () => ({ key: strangers.ec, header: { jwk: strangers.ec.jwk } }),
  },
  {
    name: "OA14 a stranger's keys at an address in the header",
    bends: () => ({ key: strangers.ec, header: { jku: "https://evil.test/keys" } }),
  },
  {
    name: "OA14 another algorithm under the key's name",
    bends: () => ({ key: { ...strangers.ed, kid: "key of https://work.test/realm" } }),
  },
  { name: "OA14 an access token instead", bends: () => ({ header: { typ: "at+jwt" } }) },
  { name: "OA14 a logout token instead", bends: () => ({ header: { typ: "logout+jwt" } }) },
  {
    name: "OA14 a header that wants to be understood",
    bends: () => ({ header: { crit: ["x-demo"], "x-demo": 1 } }),
  },
  {
    name: "OA14 the algorithm none",
    bends: idToken((signIns, departed) => `${part({ alg: "none" })}.${part(plain(signIns, departed))}.`),
  },
  {
    name: "OA14 the algorithm none with a signature",
    bends: idToken((signIns, departed) => `${part({ alg: "none" })}.${part(plain(signIns, departed))}.AAAA`),
  },
  {
    name: "OA14 the public key as a secret",
    bends: idToken(async (signIns, departed) => {
      const text = `${part({ alg: "HS256", kid: signIns.at.work.key.kid })}.${
        part(plain(signIns, departed))
      }`;
      const mac = createHash("sha256").update(JSON.stringify(signIns.at.work.key.jwk)).update(text).digest(
        "base64url",
      );
      return await Promise.resolve(`${text}.${mac}`);
    }),
  },
  {
    name: "OA14 the token of another provider",
    bends: idToken((signIns, departed) =>
      signed(plain(signIns, departed, signIns.at.home.issuer), signIns.at.home.key)
    ),
  },
  {
    name: "OA14 the token of another provider under this one's name",
    bends: idToken((signIns, departed) => signed(plain(signIns, departed), signIns.at.home.key)),
  },
  { name: "OA14 no ID token", bends: () => ({ answer: ({ id_token: _, ...answer }) => answer }) },
  { name: "OA14 an ID token that is none", bends: idToken(() => "a.b.c") },
  {
    name: "OA14 an ID token of a megabyte",
    bends: claims({ more: "x".repeat(1 << 20) }),
    code: "provider_unavailable",
  },
  { name: "OA14 an ID token of fifty kilobytes", bends: claims({ more: "x".repeat(50_000) }) },
  {
    name: "OA14 keys that cannot be had",
    bends: () => ({ keys: () => Promise.reject(new TypeError("no")) }),
    code: "provider_unavailable",
  },
  {
    name: "OA14 keys that never come",
    bends: () => ({ keys: () => new Promise(() => {}) }),
    code: "provider_unavailable",
  },
  {
    name: "OA14 keys of 10 MB",
    bends: () => ({ keys: () => new Response(new Uint8Array(10 << 20)) }),
    code: "provider_unavailable",
  },
  {
    name: "OA14 keys behind a redirect",
    bends: () => ({ keys: () => Response.redirect("https://evil.test/keys", 302) }),
    code: "provider_unavailable",
  },
  { name: "OA14 for the form too: no nonce", provider: "apple", bends: claims({ nonce: undefined }) },
  { name: "OA14 for the form too: another audience", provider: "apple", bends: claims({ aud: "other" }) },
  {
    name: "OA14 for the form too: another issuer",
    provider: "apple",
    bends: claims({ iss: "https://evil.test" }),
  },
  { name: "OA14 for the form too: expired", provider: "apple", bends: claims({ exp: 1 }) },
  {
    name: "OA14 for the form too: a stranger's signature",
    provider: "apple",
    bends: () => ({ key: strangers.ec }),
  },
  {
    name: "OA14 an ID token in the form, which nobody asked for",
    provider: "apple",
    bends: claims({ nonce: undefined }),
    parameters: async (parameters, signIns) => {
      parameters.set(
        "id_token",
        await signed({ iss: "https://appleid.apple.com", sub: "4711", aud: "app" }, signIns.at.apple.key),
      );
      return parameters;
    },
  },
  {
    name: "OA2 userinfo about somebody else",
    bends: () => ({
      claims: { email: undefined },
      profile: () => Response.json({ sub: "666", email: "ann@example.com", email_verified: true }),
    }),
  },
  {
    name: "OA2 userinfo about nobody",
    bends: () => ({
      claims: { email: undefined },
      profile: () => Response.json({ email: "ann@example.com" }),
    }),
  },
  { name: "OA3 a made-up code", parameters: (parameters) => changed(parameters, { code: "made up" }) },
  { name: "OA3 no code", parameters: (parameters) => changed(parameters, { code: null }) },
  {
    name: "OA3 two codes",
    parameters: (parameters) => {
      parameters.append("code", "another");
      return parameters;
    },
  },
  {
    name: "OA3 the code of another person's sign-in (code injection)",
    parameters: async (parameters, signIns) => {
      const other = await signIns.begin("work");
      return changed(parameters, { code: signIns.at.work.agree(other.location, mallory).get("code") });
    },
  },
  {
    name: "OA3 a code that was used before",
    parameters: async (parameters, signIns) => {
      const other = await signIns.begin("work");
      const used = signIns.at.work.agree(other.location, mallory);
      await signIns.back("work", used, other);
      return changed(parameters, { code: used.get("code") });
    },
  },
  {
    name: "OA7 an answer that names another issuer (mix-up)",
    parameters: (parameters) => changed(parameters, { iss: "https://home.test" }),
  },
  {
    name: "OA11 an error beside a code",
    parameters: (parameters) => changed(parameters, { error: "server_error" }),
  },
  {
    name: "OA11 a made-up error",
    parameters: (parameters) => changed(parameters, { error: '"><script>', code: null }),
  },
  {
    name: "OA2 a token that is no text",
    bends: () => ({ answer: (answer) => ({ ...answer, access_token: { $gt: "" } }) }),
  },
  {
    name: "OA2 a token of another type",
    bends: () => ({ answer: (answer) => ({ ...answer, token_type: "mac" }) }),
  },
  {
    name: "OA2 another kind of answer",
    bends: () => ({ response: () => new Response("<html>", { headers: { "content-type": "text/html" } }) }),
  },
  {
    name: "OA2 a profile without an id",
    provider: "github",
    bends: () => ({ profile: () => Response.json({ login: "ann" }) }),
  },
  {
    name: "OA2 a profile with a text as id",
    provider: "github",
    bends: () => ({ profile: () => Response.json({ id: "4711", login: "ann" }) }),
  },
  {
    name: "OA2 a profile that leads elsewhere",
    provider: "discord",
    bends: () => ({ profile: () => Response.redirect("http://10.0.0.1/", 302) }),
    code: "provider_unavailable",
  },
];

Deno.test("OA2 OA3 OA7 OA14 answers that are not the provider's, not for us or not of this sign-in are refused in the app's address", async (t) => {
  for (const { name, provider = "work", bends, parameters, code = "provider_error" } of answerVectors) {
    await t.step(name, async () => {
      await using signIns = await startTestSignIns();
      const departed = await signIns.begin(provider);
      const good = signIns.at[provider].agree(departed.location, ann);
      const bent = await parameters?.(new URLSearchParams(good), signIns) ?? good;
      const sessions = signIns.accounts.port.rows("_sessions").length;
      signIns.at[provider].bends = await bends?.(signIns, departed) ?? {};
      const fragment = fragmentOf(await signIns.back(provider, bent, departed));
      assert.equal(fragment.get("svc_error"), code, signIns.accounts.logged.join("\n"));
      assert.equal(fragment.get("svc_access_token"), null);
      assert.equal(signIns.accounts.port.rows("_sessions").length, sessions);
      assert.deepEqual(signIns.accounts.port.rows("_users").filter((user) => user["name"] === "Ann"), []);
      assert.deepEqual(
        signIns.asked.filter((url) => url.startsWith("https://evil.test") || url.startsWith("http:")),
        [],
      );
      // It cannot be tried again either.
      signIns.at[provider].bends = {};
      assert.equal((await signIns.back(provider, good, departed)).status, 400);
    });
  }
});

/** An account there is already, and somebody who comes by a provider: are they one? */
interface AddressVector {
  readonly name: string;
  readonly arrange: (signIns: TestSignIns) => Promise<string | null>;
  readonly by: ProviderName;
  readonly person: typeof ann | { id: string; email?: string; verified?: boolean };
  readonly error?: string;
}

async function signUp({ accounts }: TestSignIns): Promise<string> {
  return (await accounts.signUp("ann@example.com")).userId ?? "";
}

async function verifiedUser({ accounts }: TestSignIns): Promise<string> {
  await accounts.post("/magic/request", { email: "ann@example.com" });
  const mail = await accounts.mailTo("ann@example.com");
  return (await accounts.post("/magic/verify", { token: mail?.token })).body.userId;
}

const addressVectors: readonly AddressVector[] = [
  {
    name: "OL2 an address the provider has not verified",
    arrange: verifiedUser,
    by: "work",
    person: { ...ann, verified: false },
  },
  {
    name: "OL2 an address the provider says nothing of",
    arrange: verifiedUser,
    by: "work",
    person: { id: "1", email: ann.email },
  },
  {
    name: "OL2 an address in a tenant that does not own its domain",
    arrange: verifiedUser,
    by: "microsoft",
    person: ann,
  },
  {
    name: "OL2 an unverified address of the chat platform",
    arrange: verifiedUser,
    by: "discord",
    person: { ...ann, verified: false },
  },
  {
    name: "OL2 an unverified primary address beside a verified one",
    arrange: verifiedUser,
    by: "github",
    person: { ...ann, verified: false },
  },
  {
    name: "OL2 a provider that is not trusted with addresses",
    arrange: verifiedUser,
    by: "home",
    person: ann,
    error: "email_in_use",
  },
  {
    name: "OL3 an address that changed hands at the provider",
    arrange: async (signIns) => (await signIns.signIn("work", ann)).get("svc_user_id"),
    by: "work",
    person: { ...ann, id: "0815" },
    error: "email_in_use",
  },
  {
    name: "OL1 the subject of another issuer",
    arrange: async (signIns) => (await signIns.signIn("work", { id: "4711" })).get("svc_user_id"),
    by: "home",
    person: { id: "4711" },
  },
  {
    name: "OL1 a subject in other letters",
    arrange: async (signIns) => (await signIns.signIn("work", { id: "ann" })).get("svc_user_id"),
    by: "work",
    person: { id: "Ann" },
  },
  {
    name: "OL2 an address that looks alike",
    arrange: verifiedUser,
    by: "work",
    person: { ...ann, email: "ann@examp1e.com" },
  },
  {
    name: "OL2 an address that is two",
    arrange: verifiedUser,
    by: "work",
    person: { ...ann, email: "ann@example.com,mallory@example.com" },
  },
];

Deno.test("OL1 OL2 OL3 nobody comes into an account by an address that is not proven theirs", async (t) => {
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

Deno.test("OL2 an address that both sides have verified leads to its user, who keeps the password and the sessions", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const userId = await verifiedUser(signIns);
  assert.equal((await signIns.signIn("work", ann)).get("svc_user_id"), userId);
  assert.equal((await signIns.signIn("github", ann)).get("svc_user_id"), userId);
  assert.equal((await signIns.signIn("github", { id: ann.id })).get("svc_user_id"), userId);
  assert.equal(accounts.port.rows("_sessions").length, 4);
  assert.equal(accounts.port.rows("_users").length, 1);
});

Deno.test("OL4 who signed up with somebody's address before them loses every way in when they come", async () => {
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

Deno.test("OA4 the redirect that was chosen is the one that is used, whatever the callback says", async () => {
  await using signIns = await startTestSignIns();
  const departed = await signIns.begin("github", appUrl);
  const parameters = signIns.at.github.agree(departed.location, ann);
  for (const name of ["redirect_to", "redirect_uri", "redirectTo", "return_to"]) {
    parameters.set(name, "https://evil.test/");
  }
  fragmentOf(await signIns.back("github", parameters, departed));
});
