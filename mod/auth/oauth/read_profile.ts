/** Profiles of providers that have no ID tokens. */
import type { z } from "zod";
import { readJson } from "../issuers/mod.ts";
import type { BoundedFetch } from "../outgoing/bounded_fetch.ts";
import { providerError } from "./code_flow.ts";
import { ProviderError } from "./provider.ts";

/** What an endpoint tells of whoever the access token is of. Throws `ProviderError`. */
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
    `The profile is not one: ${profile.error.issues[0]?.path.join(".")}`,
  );
}
