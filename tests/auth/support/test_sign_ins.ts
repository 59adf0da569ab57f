/** Accounts with every preset, and a browser that signs in by them. */
import assert from "node:assert/strict";
import { presetParts, readAuthConfig } from "../../../mod/auth/mod.ts";
import { type StandInHost, world } from "./stand_in.ts";
import { appleKey, clientSecret, type Person, StandInProvider } from "./stand_in_providers.ts";
import {
  type Answer,
  startTestAccounts,
  type TestAccounts,
  type TestAccountsOptions,
} from "./test_accounts.ts";

export const appUrl = "https://app.example.com/auth/done";
export const providerNames = [
  "github",
  "discord",
  "google",
  "gitlab",
  "microsoft",
  "apple",
  "work",
  "home",
] as const;
export type ProviderName = (typeof providerNames)[number];

const tenant = "72f988bf-86f1-41af-91ab-2d7cd011db47";

/** A browser that was sent to a provider. */
export interface StartedSignIn {
  readonly location: string;
  readonly state: string;
  /** The pair of the cookie, as browsers send it. */
  readonly cookie: string;
  readonly setCookie: string;
}

export interface TestSignIns extends AsyncDisposable {
  readonly accounts: TestAccounts;
  readonly at: Readonly<Record<ProviderName, StandInProvider>>;
  readonly asked: string[];
  begin(provider: ProviderName, redirectTo?: string): Promise<StartedSignIn>;
  /** Returns to the server with these parameters. */
  back(
    provider: string,
    parameters: URLSearchParams,
    options?: { cookie?: string; form?: boolean },
  ): Promise<Answer>;
  /** Runs a complete sign-in. Returns the parameters in the app's fragment. */
  signIn(provider: ProviderName, person: Person): Promise<URLSearchParams>;
}

/** The values in the fragment of the address at which the app was opened. */
export function fragmentOf(answer: Answer): URLSearchParams {
  const location = new URL(answer.headers.get("location") ?? "");
  assert.equal(location.href.split("#")[0], appUrl);
  return new URLSearchParams(location.hash.slice(1));
}

/** Timeout of requests to providers. On a busy machine they may take seconds. */
const REQUEST_MS = 60_000;
/** Timeout for providers that never answer. */
export const SHORT_REQUEST_MS = 2_000;

export async function startTestSignIns(
  { requestMs = REQUEST_MS, ...options }: TestAccountsOptions & { readonly requestMs?: number | undefined } =
    {},
): Promise<TestSignIns> {
  let now = () => Date.now();
  const open = (issuer: string) => StandInProvider.open(issuer, () => now());
  const at = {
    github: await open("https://github.test"),
    discord: await open("https://discord.test"),
    google: await open("https://google.test"),
    gitlab: await open("https://gitlab.test"),
    microsoft: await open(`https://microsoft.test/${tenant}/v2.0`),
    apple: await open("https://appleid.apple.com"),
    work: await open("https://work.test/realm"),
    home: await open("https://home.test"),
  };
  const key = appleKey(() => now());
  at.apple.checkSecret = key.check;
  const outside = world({
    ...Object.fromEntries(
      Object.values(at).map((provider) => [new URL(provider.issuer).host, provider.answer]),
    ),
    "evil.test": () => Response.json({}),
  } as Record<string, StandInHost>);
  const app = { clientId: "app", clientSecret: { env: "SYNCLINE_TEST_SECRET" } };
  const config = {
    providers: {
      github: {
        ...app,
        endpoints: {
          authorization: "https://github.test/login/oauth/authorize",
          token: "https://github.test/login/oauth/access_token",
          user: "https://github.test/user",
          emails: "https://github.test/user/emails",
        },
      },
      discord: {
        ...app,
        endpoints: {
          authorization: "https://discord.test/oauth2/authorize",
          token: "https://discord.test/api/oauth2/token",
          user: "https://discord.test/users/@me",
        },
      },
      google: { ...app, issuer: "https://google.test" },
      gitlab: { ...app, issuer: "https://gitlab.test" },
      microsoft: { ...app, tenant, authority: "https://microsoft.test" },
      apple: { clientId: "app", teamId: "TEAM", keyId: "KEY", privateKey: { file: "AuthKey.p8" } },
      work: { preset: "oidc", ...app, issuer: "https://work.test/realm" },
      home: { preset: "oidc", ...app, issuer: "https://home.test", linkByEmail: false },
    },
  };
  const accounts = await startTestAccounts({
    origin: "https://api.example.com",
    ...options,
    externalAuth(clock) {
      now = clock;
      return readAuthConfig(JSON.stringify(config), {
        sources: {
          env: (name) => name === "SYNCLINE_TEST_SECRET" ? clientSecret : undefined,
          readFile: (path) =>
            path === "AuthKey.p8" ? Promise.resolve(key.pem) : Promise.reject(new Error(path)),
        },
        parts: presetParts({ now: clock, fetch: outside.fetch, requestMs }),
      });
    },
  });
  const signIns: TestSignIns = {
    accounts,
    at,
    asked: outside.asked,
    async begin(provider, redirectTo = appUrl) {
      const path = `/oauth/${provider}?redirect_to=${encodeURIComponent(redirectTo)}`;
      const { status, headers } = await accounts.get(path);
      assert.equal(status, 302);
      const setCookie = headers.get("set-cookie") ?? "";
      const location = headers.get("location") ?? "";
      return {
        location,
        state: new URL(location).searchParams.get("state") ?? "",
        setCookie,
        cookie: setCookie.split(";")[0] ?? "",
      };
    },
    async back(provider, parameters, { cookie, form = provider === "apple" } = {}) {
      const headers = cookie === undefined ? {} : { Cookie: cookie };
      const path = `/oauth/${provider}/callback`;
      if (!form) return await accounts.get(`${path}?${parameters}`, { headers });
      return await accounts.post(path, undefined, {
        text: parameters.toString(),
        headers: {
          ...headers,
          "Content-Type": "application/x-www-form-urlencoded",
          Origin: "https://appleid.apple.com",
        },
      });
    },
    async signIn(provider, person) {
      const started = await signIns.begin(provider);
      const answer = await signIns.back(provider, at[provider].agree(started.location, person), started);
      assert.equal(answer.status, provider === "apple" ? 303 : 302, JSON.stringify(answer.body));
      return fragmentOf(answer);
    },
    [Symbol.asyncDispose]: () => accounts[Symbol.asyncDispose](),
  };
  return signIns;
}
