/**
 * `syncline/accounts`: second factors of accounts, as functions that take the client. Browser-safe, and apart from the core so that
 * apps without them do not load it.
 *
 * @module
 */
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
