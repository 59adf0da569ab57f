/**
 * `syncline/accounts`: anonymous users, second factors, passkeys and API keys of accounts, as functions that take the client.
 * Browser-safe, and apart from the core so that apps that do not use them do not load them.
 *
 * @module
 */
export { signInAnonymously } from "./anonymous.ts";
export { type ApiKeyScope, createApiKey, type OwnApiKey, ownApiKeys, revokeApiKey } from "./api_keys.ts";
export {
  addPasskey,
  type OwnPasskey,
  ownPasskeys,
  type PasskeySignInOptions,
  provePasskey,
  removePasskey,
  renamePasskey,
  signInWithPasskey,
  supportsPasskeys,
} from "./passkeys.ts";
export {
  challengeOf,
  confirmTotp,
  type FactorProof,
  finishSignIn,
  type NewTotp,
  type OwnFactors,
  ownFactors,
  proofOf,
  proveFactor,
  removeTotp,
  renewRecoveryCodes,
  type SignInChallenge,
  startTotp,
} from "./second_factor.ts";
