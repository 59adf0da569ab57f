/**
 * Microsoft, based on `oidc`, for the accounts of one tenant. A tenant's administrators can enter any address, so an address
 * is only used if Microsoft states that the tenant owns its domain (the optional claim `xms_edov`).
 */
import { z } from "zod";
import { appSettings, endpoint, preset } from "../preset.ts";
import { oidcProvider } from "./oidc.ts";

export const microsoft = preset({
  settings: (secret) =>
    z.strictObject({
      ...appSettings(secret),
      tenant: z.guid("expected the id of the tenant, such as 72f988bf-86f1-41af-91ab-2d7cd011db47"),
      /** Base URL of the tenants. */
      authority: endpoint.default("https://login.microsoftonline.com"),
    }),
  open: ({ tenant, authority, ...settings }, parts) =>
    oidcProvider({
      ...settings,
      issuer: `${authority}/${tenant}/v2.0`,
      hosts: ["graph.microsoft.com"],
      profile: ({ xms_edov: owned, ...claims }) => ({
        ...claims,
        email_verified: owned === true || owned === "1" || owned === 1,
      }),
    }, parts),
});
