/** File names: sanitizing them, and sending them in `Content-Disposition`. */
import { storageLimits } from "./limits.ts";

/** Returns the last path segment without control characters, truncated to the limit; `null` if nothing is left. */
export function cleanFileName(text: string | null): string | null {
  if (text === null) return null;
  const segment = text.slice(Math.max(text.lastIndexOf("/"), text.lastIndexOf("\\")) + 1);
  const printable = segment.replace(/\p{Cc}/gu, "").toWellFormed();
  const name = cut(printable, storageLimits.nameCharsMax);
  return name === "" || name === "." || name === ".." ? null : name;
}

/** Truncates without splitting a surrogate pair. */
function cut(text: string, charsMax: number): string {
  const short = text.slice(0, charsMax);
  return short.isWellFormed() ? short : short.slice(0, -1);
}

/** Returns a `Content-Disposition` value with the name in both forms of RFC 6266. */
export function contentDisposition(kind: "inline" | "attachment", name: string | null): string {
  if (name === null) return kind;
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/gu, "_");
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encoded(name)}`;
}

/** Encodes an `ext-value` of RFC 8187: percent-encodes everything except `attr-char`. */
function encoded(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
