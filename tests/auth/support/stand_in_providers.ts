/**
 * Providers in this process, built after the public documentation of the real ones: they check requests and
 * issue codes that can be used once.
 */
import assert from "node:assert/strict";
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, randomUUID } from "node:crypto";
import { jwtVerify } from "jose";
import { signed, type SigningKey, signingKey, type StandInHost } from "./stand_in.ts";

/** The user at the browser, with the data that a provider has. */
export interface Person {
  readonly id: string;
  readonly email?: string;
  readonly verified?: boolean | string;
  readonly name?: string;
}

interface Code {
  readonly person: Person;
  readonly asked: URLSearchParams;
}

export const clientSecret = "a secret of the app";

/** Parts of the token endpoint's next response that a test may change. */
export interface ResponseOverrides {
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  key?: SigningKey;
  answer?: (answer: Record<string, unknown>) => Record<string, unknown>;
  response?: () => Response | Promise<Response>;
  keys?: () => Response | Promise<Response>;
  profile?: () => Response | Promise<Response>;
}

/** Keys by issuer, because creating them takes longer than the rest. */
const keys = new Map<string, SigningKey>();

export class StandInProvider {
  readonly key: SigningKey;
  readonly issuer: string;
  readonly codes = new Map<string, Code>();
  readonly tokens = new Map<string, Person>();
  /** Received client secrets, in order. */
  readonly secrets: string[] = [];
  overrides: ResponseOverrides = {};
  /** Checks the secret of a form. A provider with a fixed secret accepts no other. */
  checkSecret: (secret: string) => Promise<void> | void = (secret) => assert.equal(secret, clientSecret);
  readonly #now: () => number;

  private constructor(issuer: string, { key, now }: { key: SigningKey; now: () => number }) {
    this.issuer = issuer;
    this.key = key;
    this.#now = now;
  }

  static async open(issuer: string, now: () => number): Promise<StandInProvider> {
    const key = keys.get(issuer) ?? await signingKey("ES256", `key of ${issuer}`);
    keys.set(issuer, key);
    return new StandInProvider(issuer, { key, now });
  }

  /** The parameters with which the browser returns after the user has consented at this address. */
  agree(location: string, person: Person): URLSearchParams {
    const asked = new URL(location).searchParams;
    assert.equal(asked.get("response_type"), "code");
    assert.equal(asked.get("client_id"), "app");
    assert.equal(asked.get("code_challenge_method"), "S256");
    assert.match(asked.get("code_challenge") ?? "", /^[\w-]{43}$/);
    const code = randomUUID();
    this.codes.set(code, { person, asked });
    return new URLSearchParams({ code, state: asked.get("state") ?? "" });
  }

  readonly answer: StandInHost = async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/openid-configuration")) return this.#discovery();
    if (pathname.endsWith("/token") || pathname.endsWith("/access_token")) {
      return await this.#exchange(request);
    }
    if (pathname.endsWith("/keys")) {
      return await this.overrides.keys?.() ?? Response.json({ keys: [this.key.jwk] });
    }
    const token = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    const person = this.tokens.get(token ?? "");
    if (person === undefined) return Response.json({ error: "invalid_token" }, { status: 401 });
    return await this.overrides.profile?.() ?? this.#profile(pathname, person);
  };

  #discovery(): Response {
    const at = (path: string) => `${this.issuer}/${path}`;
    return Response.json({
      issuer: this.issuer,
      authorization_endpoint: at("authorize"),
      token_endpoint: at("token"),
      userinfo_endpoint: at("userinfo"),
      jwks_uri: at("keys"),
      response_types_supported: ["code"],
      id_token_signing_alg_values_supported: ["RS256", "none", "HS256"],
    });
  }

  #profile(pathname: string, { id, email, verified, name }: Person): Response {
    if (pathname === "/user") {
      return Response.json({ id: Number(id), login: `login-${id}`, name: name ?? null });
    }
    if (pathname === "/user/emails") {
      const other = { email: `other-${email}`, primary: false, verified: true };
      return Response.json(email === undefined ? [] : [other, { email, primary: true, verified }]);
    }
    if (pathname === "/users/@me") {
      return Response.json({
        id,
        username: `name-${id}`,
        global_name: name ?? null,
        email: email ?? null,
        verified,
      });
    }
    return Response.json({ sub: id, email, email_verified: verified, name });
  }

  async #exchange(request: Request): Promise<Response> {
    if (this.overrides.response) return await this.overrides.response();
    const form = new URLSearchParams(await request.text());
    const [, basic] = /^Basic (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    const secret = basic === undefined
      ? form.get("client_secret")
      : decodeURIComponent(atob(basic).split(":")[1] ?? "").replaceAll("+", " ");
    this.secrets.push(secret ?? "");
    await this.checkSecret(secret ?? "");
    const code = this.codes.get(form.get("code") ?? "");
    this.codes.delete(form.get("code") ?? "");
    const challenge = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url");
    const fits = code !== undefined && code.asked.get("code_challenge") === challenge &&
      code.asked.get("redirect_uri") === form.get("redirect_uri") &&
      form.get("grant_type") === "authorization_code";
    if (!fits) return Response.json({ error: "invalid_grant" }, { status: 400 });
    const accessToken = randomUUID();
    this.tokens.set(accessToken, code.person);
    const answer = {
      access_token: accessToken,
      token_type: "bearer",
      ...(code.asked.has("nonce") && { id_token: await this.#idToken(code) }),
    };
    return Response.json(this.overrides.answer?.(answer) ?? answer);
  }

  async #idToken({ person: { id, email, verified, name }, asked }: Code): Promise<string> {
    const now = Math.floor(this.#now() / 1000);
    const claims = {
      iss: this.issuer,
      sub: id,
      aud: "app",
      iat: now,
      exp: now + 300,
      nonce: asked.get("nonce"),
      email,
      email_verified: verified,
      name,
    };
    return await signed(
      { ...claims, ...this.overrides.claims },
      this.overrides.key ?? this.key,
      this.overrides.header,
    );
  }
}

/** The key an app has at Apple, and what checks secrets signed with it. */
export function appleKey(now: () => number) {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    pem: createPrivateKey(privateKey.export({ type: "pkcs8", format: "pem" })).export({
      type: "pkcs8",
      format: "pem",
    }) as string,
    async check(secret: string): Promise<void> {
      const { payload, protectedHeader } = await jwtVerify(
        secret,
        createPublicKey(publicKey.export({ type: "spki", format: "pem" })),
        {
          issuer: "TEAM",
          subject: "app",
          audience: "https://appleid.apple.com",
          algorithms: ["ES256"],
          currentDate: new Date(now()),
        },
      );
      assert.equal(protectedHeader.kid, "KEY");
      // No secret may live longer than half a year.
      assert.ok(Number(payload.exp) - Number(payload.iat) <= 15_777_000);
    },
  };
}
