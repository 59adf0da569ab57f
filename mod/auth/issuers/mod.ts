/** Tokens of other issuers, as the rest of accounts uses them. */
export { discovery, type DiscoveryDocument, readJson } from "./discovery.ts";
export { broughtBy, type ExternalRefusal, ExternalTokens, type TrustedIssuer } from "./external_tokens.ts";
export { KeySet, signatureAlgorithms } from "./key_set.ts";
export { checkClaims, type ReadToken, readToken, signatureFault } from "./signed_token.ts";
