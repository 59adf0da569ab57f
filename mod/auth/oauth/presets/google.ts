/** Google, based on `oidc`. */
import { z } from "zod";
import { appSettings, endpoint, preset } from "../preset.ts";
import { oidcProvider } from "./oidc.ts";

export const google = preset({
  settings: (secret) =>
    z.strictObject({ ...appSettings(secret), issuer: endpoint.default("https://accounts.google.com") }),
  open: (settings, parts) =>
    oidcProvider({
      ...settings,
      hosts: ["oauth2.googleapis.com", "openidconnect.googleapis.com", "www.googleapis.com"],
    }, parts),
});
