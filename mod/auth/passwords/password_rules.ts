/** Password rules (AE15). */
import { authLimits } from "../limits.ts";
import { ServiceError } from "../../errors.ts";

/**
 * Returns the normalized password to hash, so that the same characters have the same bytes on every system.
 * Throws `weak_password` under 8 characters and `invalid_password` over 256, counted in code points.
 */
export function checkedPassword(password: string): string {
  const normalized = normalizedPassword(password);
  if (normalized === null) throw new ServiceError("invalid_password");
  if (charCount(normalized) < authLimits.passwordCharsMin) throw new ServiceError("weak_password");
  return normalized;
}

/** Like {@linkcode checkedPassword} for a sign-in: returns `null` if the password cannot be valid. */
export function normalizedPassword(password: string): string | null {
  if (!password.isWellFormed()) return null;
  const normalized = password.normalize("NFC");
  return charCount(normalized) > authLimits.passwordCharsMax ? null : normalized;
}

function charCount(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
