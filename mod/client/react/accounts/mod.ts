/**
 * `syncline/react/accounts`: second factors and passkeys as React hooks, beside `syncline/react`.
 *
 * @module
 */
"use client";

export { type PasskeysView, usePasskeys, usePasskeySignIn } from "./use_passkeys.ts";
export {
  type SecondFactorView,
  type SignInChallengeView,
  useSecondFactor,
  useSignInChallenge,
} from "./use_second_factor.ts";
