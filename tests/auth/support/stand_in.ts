/** The outside world as tests need it: hosts that answer in this process, and tokens signed with keys of the test's own. */
import { Buffer } from "node:buffer";
import { CompactSign, exportJWK, generateKeyPair, type JWK } from "jose";

/** Answers requests to one host. */
export type StandInHost = (request: Request) => Response | Promise<Response>;

/** Simulated hosts. Requests to any other host fail like those to unknown hosts. */
export interface World {
  readonly fetch: typeof fetch;
  /** Requested URLs, in order. */
  readonly asked: string[];
}

export function world(hosts: Readonly<Record<string, StandInHost>>): World {
  const asked: string[] = [];
  return {
    asked,
    async fetch(input, init) {
      const request = new Request(input, init);
      asked.push(request.url);
      const host = hosts[new URL(request.url).host];
      if (host === undefined) throw new TypeError("error sending request");
      const { signal } = request;
      const aborted = Promise.withResolvers<never>();
      const abort = () => aborted.reject(new DOMException("aborted", "AbortError"));
      signal.addEventListener("abort", abort, { once: true });
      try {
        return await Promise.race([host(request), aborted.promise]);
      } finally {
        signal.removeEventListener("abort", abort);
      }
    },
  };
}

export interface SigningKey {
  readonly alg: string;
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export async function signingKey(
  alg: "RS256" | "ES256" | "EdDSA" | "RS512",
  kid: string,
): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { alg, kid, privateKey, jwk: { ...await exportJWK(publicKey), kid, alg, use: "sig" } };
}

/** Signs any claims. */
export async function signed(
  claims: Record<string, unknown>,
  key: SigningKey,
  header: Record<string, unknown> = {},
): Promise<string> {
  return await new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: "JWT", ...header })
    .sign(key.privateKey, { crit: { "x-demo": true } });
}

export function part(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
