/** Tests a provider as configured: its endpoints, its sign-in page, and whether it accepts ID and secret of the client. */
import { randomBytes } from "node:crypto";
import { externalLimits } from "../limits.ts";
import type { Provider, Return } from "./preset.ts";

/** `endpoints`: the discovery document, if there is one. `page`: the address to which browsers are sent. */
export type ProviderStep = "endpoints" | "page" | "client";

export interface ProviderCheck {
  /** Steps done; only the last one can have failed. Without `client`, the provider did not reveal the result. */
  readonly steps: readonly { readonly step: ProviderStep; readonly error: string | null }[];
}

/** Codes with which providers reject an unknown authorization code of a client that they accept. */
const CODE_REJECTED: ReadonlySet<string> = new Set(["invalid_grant", "bad_verification_code"]);
/** Codes with which they reject the client. */
const CLIENT_REJECTED: ReadonlySet<string> = new Set([
  "invalid_client",
  "unauthorized_client",
  "incorrect_client_credentials",
]);

/** Starts a sign-in that no user finishes, and redeems a code that does not exist. Never rejects. */
export async function checkProvider(
  provider: Provider,
  { callback, fetch }: { readonly callback: string; readonly fetch: typeof globalThis.fetch },
): Promise<ProviderCheck> {
  const random = () => randomBytes(32).toString("base64url");
  const flow = { callback, state: random(), codeVerifier: random(), nonce: random() };
  let url: string;
  try {
    url = await provider.authorizationUrl(flow);
  } catch (error) {
    return { steps: [{ step: "endpoints", error: reasonOf(error) }] };
  }
  const endpoints = { step: "endpoints", error: null } as const;
  const page = { step: "page", error: await pageFault(url, { callback, fetch }) } as const;
  if (page.error !== null) return { steps: [endpoints, page] };
  const client = await clientFault(provider, {
    ...flow,
    parameters: new URLSearchParams({
      ...{ code: random(), state: flow.state },
      ...provider.issuer !== undefined && { iss: provider.issuer },
    }),
  });
  return {
    steps: [endpoints, page, ...client === undefined ? [] : [{ step: "client", error: client } as const]],
  };
}

/** Why a browser would not see the sign-in page; `null` if it would. */
async function pageFault(
  url: string,
  { callback, fetch }: { readonly callback: string; readonly fetch: typeof globalThis.fetch },
): Promise<string | null> {
  const { host } = new URL(url);
  try {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { Accept: "text/html" },
      signal: AbortSignal.timeout(externalLimits.requestMs),
    });
    await response.body?.cancel();
    const target = URL.parse(response.headers.get("location") ?? "", url);
    const code = target?.href.startsWith(callback) ? target.searchParams.get("error") : null;
    if (code !== null && code !== undefined) return `${host} rejects the sign-in: ${printable(code)}`;
    if (response.status < 400 && !/\berror\b/.test(target?.pathname ?? "")) return null;
    const status = response.status < 400 ? "an error page" : `status ${response.status}`;
    return `${host} responds with ${status}: check the client ID and the callback address`;
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    return `${host}: ${late ? `no response within ${externalLimits.requestMs} ms` : "the request failed"}`;
  }
}

/** Why the provider rejects the client; `null` if it accepts it, `undefined` if its response leaves that open. */
async function clientFault(provider: Provider, back: Return): Promise<string | null | undefined> {
  try {
    await provider.identify(back);
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) return undefined;
    if (CODE_REJECTED.has(code)) return null;
    return CLIENT_REJECTED.has(code) ? `The provider responds with ${code}` : undefined;
  }
}

/** Finds the provider's error code in the errors of the library, which wrap each other. */
function codeOf(error: unknown): string | undefined {
  let inner: unknown = error;
  for (let depth = 0; depth < 6 && typeof inner === "object" && inner !== null; depth++) {
    const { error: code, body, status, cause } = inner as {
      readonly error?: unknown;
      readonly body?: { readonly error?: unknown } | null;
      readonly status?: unknown;
      readonly cause?: unknown;
    };
    for (const found of [code, body?.error]) if (typeof found === "string") return found;
    // A challenge of HTTP authentication has no code.
    if (status === 401) return "invalid_client";
    inner = cause;
  }
  return undefined;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function printable(text: string): string {
  return text.slice(0, 100).replace(/[^\x20-\x7e]/g, "?");
}
