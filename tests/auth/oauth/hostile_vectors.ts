/** Attacks on provider sign-ins as tables: the manipulation, and the expected result. */
import { createHmac, createPublicKey, type JsonWebKey } from "node:crypto";
import { externalLimits } from "../../../mod/auth/limits.ts";
import { part, signed, signingKey } from "../support/stand_in.ts";
import { clientSecret, type ResponseOverrides } from "../support/stand_in_providers.ts";
import {
  type ProviderName,
  SHORT_REQUEST_MS,
  type StartedSignIn,
  type TestSignIns,
} from "../support/test_sign_ins.ts";

export const ann = { id: "4711", email: "ann@example.com", verified: true, name: "Ann" };
export const mallory = { id: "666", email: "mallory@example.com", verified: true, name: "Mallory" };

const strangers = {
  ec: await signingKey("ES256", "stranger"),
  ed: await signingKey("EdDSA", "stranger"),
};

/** Returns with other parameters or another cookie than expected. */
export interface StateVector {
  readonly name: string;
  readonly provider?: ProviderName;
  readonly alter: (parts: { signIns: TestSignIns; started: StartedSignIn; parameters: URLSearchParams }) =>
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

export const stateVectors: readonly StateVector[] = [
  { name: "OA7 no cookie: another browser began it (login CSRF)", alter: () => ({ cookie: undefined }) },
  { name: "OA7 an empty cookie", alter: () => ({ cookie: "svc_oauth_state=" }) },
  {
    name: "OA7 the cookie of another sign-in",
    alter: async ({ signIns }) => ({ cookie: (await signIns.begin("github")).cookie }),
  },
  {
    name: "OA7 the state of another sign-in",
    alter: async ({ signIns, parameters }) => ({
      parameters: changed(parameters, { state: (await signIns.begin("github")).state }),
    }),
  },
  {
    name: "OA7 a second cookie with the right one",
    alter: ({ started }) => ({ cookie: `svc_oauth_state=x; ${started.cookie}` }),
  },
  {
    name: "OA7 the right cookie twice",
    alter: ({ started }) => ({ cookie: `${started.cookie}; ${started.cookie}` }),
  },
  {
    name: "OA7 the cookie under another name",
    alter: ({ started }) => ({ cookie: started.cookie.replace("svc_", "svc2_") }),
  },
  {
    name: "OA7 the cookie's name in capitals",
    alter: ({ started }) => ({ cookie: started.cookie.replace("svc_oauth", "SVC_OAUTH") }),
  },
  { name: "OA9 no state", alter: ({ parameters }) => ({ parameters: changed(parameters, { state: null }) }) },
  {
    name: "OA9 an empty state on both sides",
    alter: ({ parameters }) => ({
      parameters: changed(parameters, { state: "" }),
      cookie: "svc_oauth_state=",
    }),
  },
  {
    name: "OA9 a made-up state on both sides",
    alter: ({ parameters }) => ({
      parameters: changed(parameters, { state: "a".repeat(43) }),
      cookie: `svc_oauth_state=${"a".repeat(43)}`,
    }),
  },
  {
    name: "OA9 the state twice",
    alter: ({ parameters, started }) => {
      parameters.append("state", started.state);
      return { parameters };
    },
  },
  {
    name: "OA9 the stored hash of the state",
    alter: ({ signIns, parameters }) => {
      const stored = String(signIns.accounts.port.rows("_oauth_flows")[0]?.["stateHash"]);
      return { parameters: changed(parameters, { state: stored }), cookie: `svc_oauth_state=${stored}` };
    },
  },
  {
    name: "OA9 the state cut",
    alter: ({ parameters, started }) => ({
      parameters: changed(parameters, { state: started.state.slice(0, -1) }),
      cookie: `svc_oauth_state=${started.state.slice(0, -1)}`,
    }),
  },
  {
    name: "OA9 the state followed by a space",
    alter: ({ parameters, started }) => ({
      parameters: changed(parameters, { state: `${started.state} ` }),
    }),
  },
  {
    name: "OA9 an endless state",
    alter: ({ parameters }) => ({ parameters: changed(parameters, { state: "a".repeat(9_000) }) }),
  },
  {
    name: "OA8 a sign-in of eleven minutes ago",
    alter: ({ signIns }) => {
      signIns.accounts.clock.now += externalLimits.flowMs + 60_000;
      return {};
    },
  },
  {
    name: "OA7 a sign-in with one provider finished at another (mix-up)",
    alter: () => ({ provider: "discord" }),
  },
  {
    name: "OA7 a sign-in with one issuer finished at another (mix-up)",
    provider: "work",
    alter: () => ({ provider: "home" }),
  },
  {
    name: "OA12 a form of the right preset for a sign-in with another",
    alter: () => ({ provider: "apple", form: true }),
  },
  {
    name: "OA7 a form without the cookie",
    provider: "apple",
    alter: () => ({ cookie: undefined, form: true }),
  },
];

/** The browser returns correctly, but the provider, or an impostor, sends a wrong response. */
export interface AnswerVector {
  readonly name: string;
  readonly provider?: ProviderName;
  readonly overrides?: (
    signIns: TestSignIns,
    started: StartedSignIn,
  ) => ResponseOverrides | Promise<ResponseOverrides>;
  readonly parameters?: (
    parameters: URLSearchParams,
    signIns: TestSignIns,
  ) => URLSearchParams | Promise<URLSearchParams>;
  readonly code?: string;
  /** Timeout of requests to the provider. */
  readonly requestMs?: number;
}

const claims = (altered: Record<string, unknown>) => () => ({ claims: altered });
const idToken =
  (make: (signIns: TestSignIns, started: StartedSignIn) => string | Promise<string>) =>
  async (signIns: TestSignIns, started: StartedSignIn): Promise<ResponseOverrides> => {
    const id_token = await make(signIns, started);
    return { answer: (answer) => ({ ...answer, id_token }) };
  };

function plain(
  signIns: TestSignIns,
  started: StartedSignIn,
  issuer = signIns.at.work.issuer,
): Record<string, unknown> {
  const now = Math.floor(signIns.accounts.clock.now / 1000);
  const nonce = new URL(started.location).searchParams.get("nonce");
  return { iss: issuer, sub: "4711", aud: "app", iat: now, exp: now + 300, nonce };
}

export const answerVectors: readonly AnswerVector[] = [
  { name: "OA14 no nonce", overrides: claims({ nonce: undefined }) },
  { name: "OA14 another nonce", overrides: claims({ nonce: "x".repeat(43) }) },
  { name: "OA14 an empty nonce", overrides: claims({ nonce: "" }) },
  { name: "OA14 the state as nonce", overrides: (_, { state }) => ({ claims: { nonce: state } }) },
  {
    name: "OA14 a list with the nonce",
    overrides: (_, { location }) => ({ claims: { nonce: [new URL(location).searchParams.get("nonce")] } }),
  },
  { name: "OA14 another audience", overrides: claims({ aud: "other" }) },
  { name: "OA14 no audience", overrides: claims({ aud: undefined }) },
  { name: "OA14 two audiences without an authorized party", overrides: claims({ aud: ["app", "other"] }) },
  {
    name: "OA14 another app as authorized party",
    overrides: claims({ aud: ["app", "other"], azp: "other" }),
  },
  { name: "OA14 our audience, but another app as authorized party", overrides: claims({ azp: "other" }) },
  { name: "OA14 another issuer", overrides: claims({ iss: "https://evil.test" }) },
  { name: "OA14 the issuer with a slash", overrides: claims({ iss: "https://work.test/realm/" }) },
  { name: "OA14 another realm of the same host", overrides: claims({ iss: "https://work.test/other" }) },
  { name: "OA14 no issuer", overrides: claims({ iss: undefined }) },
  {
    name: "OA14 expired",
    overrides: (signIns) => ({ claims: { exp: Math.floor(signIns.accounts.clock.now / 1000) } }),
  },
  { name: "OA14 no exp", overrides: claims({ exp: undefined }) },
  { name: "OA14 a string as exp", overrides: claims({ exp: "never" }) },
  {
    name: "OA14 not yet valid",
    overrides: (signIns) => ({ claims: { nbf: Math.floor(signIns.accounts.clock.now / 1000) + 3_600 } }),
  },
  { name: "OA14 no subject", overrides: claims({ sub: undefined }) },
  { name: "OA14 an empty subject", overrides: claims({ sub: "" }) },
  { name: "OA14 a number as subject", overrides: claims({ sub: 4711 }) },
  { name: "OA14 an endless subject", overrides: claims({ sub: "s".repeat(300) }) },
  {
    name: "OA14 a stranger's signature",
    overrides: () => ({ key: { ...strangers.ec, kid: "key of https://work.test/realm" } }),
  },
  { name: "OA14 an unknown key", overrides: () => ({ key: strangers.ec }) },
  {
    name: "OA14 a stranger's key in the header",
    overrides: () => ({ key: strangers.ec, header: { jwk: strangers.ec.jwk } }),
  },
  {
    name: "OA14 a stranger's keys at an address in the header",
    overrides: () => ({ key: strangers.ec, header: { jku: "https://evil.test/keys" } }),
  },
  {
    name: "OA14 another algorithm under the key's name",
    overrides: () => ({ key: { ...strangers.ed, kid: "key of https://work.test/realm" } }),
  },
  { name: "OA14 an access token instead", overrides: () => ({ header: { typ: "at+jwt" } }) },
  { name: "OA14 a logout token instead", overrides: () => ({ header: { typ: "logout+jwt" } }) },
  {
    name: "OA14 a header that wants to be understood",
    overrides: () => ({ header: { crit: ["x-demo"], "x-demo": 1 } }),
  },
  {
    name: "OA14 the algorithm none",
    overrides: idToken((signIns, started) => `${part({ alg: "none" })}.${part(plain(signIns, started))}.`),
  },
  {
    name: "OA14 the algorithm none with a signature",
    overrides: idToken((signIns, started) =>
      `${part({ alg: "none" })}.${part(plain(signIns, started))}.AAAA`
    ),
  },
  {
    name: "OA14 the public key as a secret",
    overrides: idToken(async (signIns, started) => {
      const text = `${part({ alg: "HS256", kid: signIns.at.work.key.kid })}.${part(plain(signIns, started))}`;
      const mac = createHmac("sha256", JSON.stringify(signIns.at.work.key.jwk)).update(text).digest(
        "base64url",
      );
      return await Promise.resolve(`${text}.${mac}`);
    }),
  },
  {
    name: "OA14 the public key's PEM as a secret",
    overrides: idToken((signIns, started) => {
      const { key } = signIns.at.work;
      const pem = createPublicKey({ key: key.jwk as JsonWebKey, format: "jwk" });
      const text = `${part({ alg: "HS256", kid: key.kid })}.${part(plain(signIns, started))}`;
      const secret = pem.export({ type: "spki", format: "pem" });
      return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
    }),
  },
  {
    name: "OA14 the app's own secret as the key",
    overrides: idToken((signIns, started) => {
      const text = `${part({ alg: "HS256" })}.${part(plain(signIns, started))}`;
      return `${text}.${createHmac("sha256", clientSecret).update(text).digest("base64url")}`;
    }),
  },
  {
    name: "OA14 a huge name of a key",
    overrides: () => ({ key: { ...strangers.ec, kid: "k".repeat(20_000) } }),
  },
  {
    name: "OA14 a key that the provider has removed from its set",
    overrides: () => ({ keys: () => Response.json({ keys: [strangers.ed.jwk] }) }),
  },
  {
    name: "OA14 the token of another provider",
    overrides: idToken((signIns, started) =>
      signed(plain(signIns, started, signIns.at.home.issuer), signIns.at.home.key)
    ),
  },
  {
    name: "OA14 the token of another provider under this one's name",
    overrides: idToken((signIns, started) => signed(plain(signIns, started), signIns.at.home.key)),
  },
  { name: "OA14 no ID token", overrides: () => ({ answer: ({ id_token: _, ...answer }) => answer }) },
  { name: "OA14 an ID token that is none", overrides: idToken(() => "a.b.c") },
  {
    name: "OA14 an ID token of a megabyte",
    overrides: claims({ more: "x".repeat(1 << 20) }),
    code: "provider_unavailable",
  },
  { name: "OA14 an ID token of fifty kilobytes", overrides: claims({ more: "x".repeat(50_000) }) },
  {
    name: "OA14 keys that cannot be had",
    overrides: () => ({ keys: () => Promise.reject(new TypeError("no")) }),
    code: "provider_unavailable",
  },
  {
    name: "OA14 keys that never arrive",
    overrides: () => ({ keys: () => new Promise(() => {}) }),
    requestMs: SHORT_REQUEST_MS,
    code: "provider_unavailable",
  },
  {
    name: "OA14 keys of 10 MB",
    overrides: () => ({ keys: () => new Response(new Uint8Array(10 << 20)) }),
    code: "provider_unavailable",
  },
  {
    name: "OA14 a redirect to the keys",
    overrides: () => ({ keys: () => Response.redirect("https://evil.test/keys", 302) }),
    code: "provider_unavailable",
  },
  { name: "OA14 for the form too: no nonce", provider: "apple", overrides: claims({ nonce: undefined }) },
  { name: "OA14 for the form too: another audience", provider: "apple", overrides: claims({ aud: "other" }) },
  {
    name: "OA14 for the form too: another issuer",
    provider: "apple",
    overrides: claims({ iss: "https://evil.test" }),
  },
  { name: "OA14 for the form too: expired", provider: "apple", overrides: claims({ exp: 1 }) },
  {
    name: "OA14 for the form too: a stranger's signature",
    provider: "apple",
    overrides: () => ({ key: strangers.ec }),
  },
  {
    name: "OA14 an unexpected ID token in the form",
    provider: "apple",
    overrides: claims({ nonce: undefined }),
    parameters: async (parameters, signIns) => {
      parameters.set(
        "id_token",
        await signed({ iss: "https://appleid.apple.com", sub: "4711", aud: "app" }, signIns.at.apple.key),
      );
      return parameters;
    },
  },
  {
    name: "OA2 userinfo about another user",
    overrides: () => ({
      claims: { email: undefined },
      profile: () => Response.json({ sub: "666", email: "ann@example.com", email_verified: true }),
    }),
  },
  {
    name: "OA2 userinfo without a subject",
    overrides: () => ({
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
    name: "OA11 an error together with a code",
    parameters: (parameters) => changed(parameters, { error: "server_error" }),
  },
  {
    name: "OA11 a made-up error",
    parameters: (parameters) => changed(parameters, { error: '"><script>', code: null }),
  },
  {
    name: "OA2 a token that is no text",
    overrides: () => ({ answer: (answer) => ({ ...answer, access_token: { $gt: "" } }) }),
  },
  {
    name: "OA2 a token of another type",
    overrides: () => ({ answer: (answer) => ({ ...answer, token_type: "mac" }) }),
  },
  {
    name: "OA2 another kind of answer",
    overrides: () => ({
      response: () => new Response("<html>", { headers: { "content-type": "text/html" } }),
    }),
  },
  {
    name: "OA2 a profile without an id",
    provider: "github",
    overrides: () => ({ profile: () => Response.json({ login: "ann" }) }),
  },
  {
    name: "OA2 a profile with a text as id",
    provider: "github",
    overrides: () => ({ profile: () => Response.json({ id: "4711", login: "ann" }) }),
  },
  {
    name: "OA2 a profile that leads elsewhere",
    provider: "discord",
    overrides: () => ({ profile: () => Response.redirect("http://10.0.0.1/", 302) }),
    code: "provider_unavailable",
  },
];

/** An existing account and a provider sign-in with its address: whether they are linked. */
export interface AddressVector {
  readonly name: string;
  readonly arrange: (signIns: TestSignIns) => Promise<string | null>;
  readonly by: ProviderName;
  readonly person: typeof ann | { id: string; email?: string; verified?: boolean };
  readonly error?: string;
}

export async function signUp({ accounts }: TestSignIns): Promise<string> {
  return (await accounts.signUp("ann@example.com")).userId ?? "";
}

export async function verifiedUser({ accounts }: TestSignIns): Promise<string> {
  await accounts.post("/magic/request", { email: "ann@example.com" });
  const mail = await accounts.mailTo("ann@example.com");
  return (await accounts.post("/magic/verify", { token: mail?.token })).body.userId;
}

/** Other mailboxes than ann@example.com, which Unicode normalization would make equal to it. */
export const foldedAddresses: readonly string[] = [
  "\uff41nn@example.com", // fullwidth a
  "\u1d43nn@example.com", // modifier letter a
  "\uff21NN@EXAMPLE.COM",
  "ann@\uff45xample.com",
  "ann@exam\u24dfle.com", // circled p
  "ann@exa\u00admple.com", // soft hyphen
  "ann@example\u3002com", // ideographic full stop
  "ann\uff20example.com",
  "\u00a0ann@example.com",
  " ann@example.com",
];

export const addressVectors: readonly AddressVector[] = [
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
    name: "OL2 an unverified primary address and a verified second one",
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
  ...foldedAddresses.map((email): AddressVector => ({
    name: `OL5 ${JSON.stringify(email)} becomes another address by Unicode rules`,
    arrange: verifiedUser,
    by: "work",
    person: { ...ann, email },
  })),
];

/** Redirect targets of an attacker. */
export const redirectVectors: readonly string[] = [
  "https://evil.example.com/",
  "https://app.example.com.evil.example.com/auth",
  "https://app.example.com@evil.example.com/auth",
  "https://app.example.com/authority",
  "https://app.example.com/auth/../other",
  "https://app.example.com/auth/%2e%2e/other",
  "https://app.example.com/auth%2f..%2fother",
  "https://app.example.com:444/auth",
  "http://app.example.com/auth",
  "//app.example.com/auth",
  "/auth",
  "https:app.example.com/auth",
  "https:\\\\app.example.com\\auth",
  "javascript:alert(1)//https://app.example.com/auth",
  "data:text/html,x",
  "https://app.example.com/auth\n/x",
  "",
];
