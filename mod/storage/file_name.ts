/** Original names of files: what is kept of them, and how they are told to a browser. */
import { storageLimits } from "./limits.ts";

/** The last path segment, without control characters, cut to the limit; `null` when nothing of a name is left. */
export function cleanFileName(text: string | null): string | null {
  if (text === null) return null;
  const segment = text.slice(Math.max(text.lastIndexOf("/"), text.lastIndexOf("\\")) + 1);
  const printable = segment.replace(/\p{Cc}/gu, "").toWellFormed();
  const name = cut(printable, storageLimits.nameCharsMax);
  return name === "" || name === "." || name === ".." ? null : name;
}

/** A character outside the basic plane is kept whole or not at all. */
function cut(text: string, charsMax: number): string {
  const short = text.slice(0, charsMax);
  return short.isWellFormed() ? short : short.slice(0, -1);
}

/** The value of a `Content-Disposition` header, with the name in both forms of RFC 6266. */
export function contentDisposition(kind: "inline" | "attachment", name: string | null): string {
  if (name === null) return kind;
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/gu, "_");
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encoded(name)}`;
}

/** The `ext-value` of RFC 8187: everything but its `attr-char` in percent form. */
function encoded(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
