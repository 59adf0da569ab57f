/** The discovery document of an OpenID issuer (OpenID Connect Discovery 1.0). */
import { z } from "zod";
import { externalLimits } from "../limits.ts";
import { type BoundedFetch, OutgoingError } from "../outgoing/bounded_fetch.ts";
import { RenewedValue } from "../outgoing/renewed_value.ts";

const documentSchema = z.looseObject({
  issuer: z.string(),
  jwks_uri: z.string(),
  authorization_endpoint: z.string().optional(),
  token_endpoint: z.string().optional(),
  userinfo_endpoint: z.string().optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
});

export type DiscoveryDocument = z.infer<typeof documentSchema>;

export interface DiscoveryOptions {
  readonly issuer: string;
  readonly fetch: BoundedFetch;
  readonly now: () => number;
}

/** Fetches an issuer's document, which must name exactly that issuer. */
export function discovery({ issuer, fetch, now }: DiscoveryOptions): RenewedValue<DiscoveryDocument> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  return new RenewedValue({
    load: async () => {
      const found = documentSchema.safeParse(
        await readJson(await fetch(url), `The discovery document of ${issuer}`),
      );
      if (!found.success) {
        const [issue] = found.error.issues;
        throw new OutgoingError(
          `The discovery document of ${issuer} is not usable: ${issue?.path.join(".")}: ${issue?.message}`,
        );
      }
      if (found.data.issuer !== issuer) {
        throw new OutgoingError(`The discovery document of ${issuer} names another issuer`);
      }
      return found.data;
    },
    freshMs: externalLimits.discoveryFreshMs,
    staleMsMax: externalLimits.keysStaleMsMax,
    now,
  });
}

/** Returns the JSON of a response with status 200. `what` names it in errors. */
export async function readJson(response: Response, what: string): Promise<unknown> {
  const text = await response.text();
  if (response.status !== 200) {
    throw new OutgoingError(`${what}: status ${response.status}`, { answered: response.status < 500 });
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new OutgoingError(`${what} is not JSON`, { answered: true });
  }
}
