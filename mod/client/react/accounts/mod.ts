/**
 * `syncline/react/accounts`: second factors as React hooks, beside `syncline/react`.
 *
 * @module
 */
"use client";

export {
  type SecondFactorView,
  type SignInChallengeView,
  useSecondFactor,
  useSignInChallenge,
} from "./use_second_factor.ts";
