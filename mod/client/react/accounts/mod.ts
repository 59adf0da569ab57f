/**
 * `syncline/react/accounts`: anonymous users, second factors and passkeys as React hooks, beside `syncline/react`.
 *
 * @module
 */
"use client";

export { useAnonymousSignIn } from "./use_anonymous_sign_in.ts";
export { type PasskeysView, usePasskeys, usePasskeySignIn } from "./use_passkeys.ts";
export {
  type SecondFactorView,
  type SignInChallengeView,
  useSecondFactor,
  useSignInChallenge,
} from "./use_second_factor.ts";
