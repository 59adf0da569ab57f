/** Reads profiles of providers without ID tokens. */
import type { z } from "zod";
import { readJson } from "../issuers/mod.ts";
import type { BoundedFetch } from "../outgoing/bounded_fetch.ts";
import { providerError } from "./code_flow.ts";
import { ProviderError } from "./provider.ts";

/** Returns the profile of the access token's owner. Throws `ProviderError`. */
export async function readProfile<Schema extends z.ZodType>(
  { fetch, url, accessToken, schema }: {
    readonly fetch: BoundedFetch;
    readonly url: string;
    readonly accessToken: string;
    readonly schema: Schema;
  },
): Promise<z.output<Schema>> {
  let answer: unknown;
  try {
    const headers = {
      Authorization: `Bearer ${accessToken}`,
      Accept: "application/json",
      "User-Agent": "Syncline",
    };
    answer = await readJson(await fetch(url, { headers }), "The profile");
  } catch (error) {
    throw providerError(error);
  }
  const profile = schema.safeParse(answer);
  if (profile.success) return profile.data;
  throw new ProviderError(
    "provider_error",
    `The profile is not valid: ${profile.error.issues[0]?.path.join(".")}`,
  );
}
