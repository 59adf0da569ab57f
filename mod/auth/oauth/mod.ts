/** Public API of provider sign-ins within accounts. */
export { AuthConfigError, noProviders, type Others, readAuthConfig } from "./auth_config.ts";
export { AuthConfigFile } from "./config_file.ts";
export { type AuthConfigPlace, ConfiguredOthers } from "./configured_others.ts";
export { linkIdentityArgs, Links, startLinkArgs, unlinkIdentityArgs } from "./links.ts";
export { presetParts } from "./preset.ts";
export { oauthRoutes } from "./routes.ts";
export { SignIns } from "./sign_ins.ts";
