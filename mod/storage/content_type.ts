/** Content types: which may be stored, and which browsers may display inline (UP8, FR8). */
import { storageLimits } from "./limits.ts";

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const QUOTED = '"(?:[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\x20-\\x7e])*"';
/** `type/subtype[; params]`. Adjacent parts accept disjoint characters, so matching never backtracks. */
const CONTENT_TYPE = new RegExp(`^${TOKEN}/${TOKEN} *(?:; *(?:${TOKEN}=(?:${TOKEN}|${QUOTED}) *)?)*$`);

/** Sent for files stored without a content type. */
export const defaultContentType = "application/octet-stream";

/** Whether a string is a valid content type: printable ASCII of bounded length. */
export function isContentType(text: string): boolean {
  return text.length <= storageLimits.contentTypeCharsMax && CONTENT_TYPE.test(text);
}

/** Returns type and subtype in lower case, without parameters. */
export function essenceOf(contentType: string | null): string {
  return (contentType ?? defaultContentType).split(";", 1).join("").trim().toLowerCase();
}

const shown: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/avif",
  "image/bmp",
  "image/x-icon",
  "image/vnd.microsoft.icon",
  "text/plain",
  "text/csv",
  "application/json",
  "application/pdf",
]);

/** Whether browsers may display this type inline. No type that can contain scripts is included. */
export function isShownInline(contentType: string | null): boolean {
  const essence = essenceOf(contentType);
  return shown.has(essence) || essence.startsWith("audio/") || essence.startsWith("video/");
}
