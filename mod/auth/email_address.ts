/** Email addresses in the normalized form that is stored, compared and used for sending. */
import { domainToASCII, domainToUnicode } from "node:url";
import { authLimits } from "./limits.ts";

const LOCAL_CHARS_MAX = 64;
const LOCAL = /^[^\s"(),:;<>@[\\\]\p{Cc}\p{Cf}]+$/u;
const DOMAIN = /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Returns the address in lower case with an ASCII domain, or `null` if invalid. Mail goes to this form only, never to the input. */
export function normalizedEmail(text: string): string | null {
  const trimmed = text.trim();
  const at = trimmed.lastIndexOf("@");
  if (at < 1 || !trimmed.isWellFormed()) return null;
  const local = trimmed.slice(0, at).normalize("NFKC").toLowerCase();
  if (local.length > LOCAL_CHARS_MAX || !LOCAL.test(local)) return null;
  if (local.startsWith(".") || local.endsWith(".") || local.includes("..")) return null;
  const domain = domainToASCII(trimmed.slice(at + 1));
  if (!DOMAIN.test(domain)) return null;
  const email = `${local}@${domain}`;
  return email.length > authLimits.emailCharsMax ? null : email;
}

/**
 * Returns the stored form of an address that an issuer has verified, or `null` if storing it would change more than ASCII
 * case. Such an address is another mailbox than its stored form, and who owns one has not shown to own the other (OL5). A
 * domain may be in Unicode if converting it to ASCII and back changes nothing.
 */
export function emailAsGiven(text: string): string | null {
  const stored = normalizedEmail(text);
  if (stored === null) return null;
  const given = text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  const at = stored.lastIndexOf("@") + 1;
  const inUnicode = `${stored.slice(0, at)}${domainToUnicode(stored.slice(at))}`;
  return given === stored || given === inUnicode ? stored : null;
}
