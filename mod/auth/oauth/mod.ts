/** Public API of provider sign-ins within accounts. */
export { AuthConfigError, type ExternalAuth, noExternalAuth, readAuthConfig } from "./auth_config.ts";
export { AuthConfigFile } from "./config_file.ts";
export { type AuthConfigSource, ConfiguredExternalAuth } from "./configured_external_auth.ts";
export { linkIdentityArgs, Links, startLinkArgs, unlinkIdentityArgs } from "./links.ts";
export { presetParts } from "./preset.ts";
export type { ProviderCheck, ProviderStep } from "./provider_check.ts";
export { oauthRoutes } from "./routes.ts";
export { callbackOf, SignIns } from "./sign_ins.ts";
