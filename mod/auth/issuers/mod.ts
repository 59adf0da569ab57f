/** Public API of external issuers within accounts. */
export { discovery, type DiscoveryDocument, readJson } from "./discovery.ts";
export {
  type ExternalRefusal,
  ExternalTokens,
  identityFromClaims,
  type TrustedIssuer,
} from "./external_tokens.ts";
export { KeySet, signatureAlgorithms } from "./key_set.ts";
export { checkClaims, type ReadToken, readToken, signatureFault } from "./signed_token.ts";
