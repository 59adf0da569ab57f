/** GitLab, based on `oidc`: gitlab.com, or a self-hosted server as `issuer`. */
import { z } from "zod";
import { appSettings, endpoint, preset } from "../preset.ts";
import { oidcProvider } from "./oidc.ts";

export const gitlab = preset({
  settings: (secret) =>
    z.strictObject({ ...appSettings(secret), issuer: endpoint.default("https://gitlab.com") }),
  open: (settings, parts) => oidcProvider(settings, parts),
});
