/** Content types: what may be stored, and what a browser may show in place (UP8, FR8). */
import { storageLimits } from "./limits.ts";

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const QUOTED = '"(?:[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\x20-\\x7e])*"';
/** `type/subtype[; params]`. No two neighbours take the same character, so that every text is tried in one way only. */
const CONTENT_TYPE = new RegExp(`^${TOKEN}/${TOKEN} *(?:; *(?:${TOKEN}=(?:${TOKEN}|${QUOTED}) *)?)*$`);

/** What is answered for a file of which nothing was said. */
export const defaultContentType = "application/octet-stream";

/** Whether a text is a content type as the contract wants it: printable ASCII of bounded length. */
export function isContentType(text: string): boolean {
  return text.length <= storageLimits.contentTypeCharsMax && CONTENT_TYPE.test(text);
}

/** Type and subtype, in lower case, without parameters. */
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

/** Whether a browser may show files of this type in place. Nothing that can carry a script is among them. */
export function isShownInline(contentType: string | null): boolean {
  const essence = essenceOf(contentType);
  return shown.has(essence) || essence.startsWith("audio/") || essence.startsWith("video/");
}
