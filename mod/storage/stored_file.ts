/** Stored files: metadata, the rules of content types and names (UP8, FR8), and counters. */
import type { StorageDoc } from "./tables.ts";
import { storageLimits } from "./limits.ts";

export interface StoredFile {
  readonly id: string;
  readonly blob: string;
  /** As given at upload, or `null`. */
  readonly contentType: string | null;
  readonly name: string | null;
  /** Of the contents, in hexadecimal. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
}

export function storedFile(doc: StorageDoc<"_storage">): StoredFile {
  return {
    id: doc._id,
    blob: doc.blob,
    contentType: doc.contentType ?? null,
    name: doc.name ?? null,
    sha256: doc.sha256,
    size: doc.size,
  };
}

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

/** Counters of uploaded and downloaded files since the server started. */
export class FileTraffic {
  uploads = 0;
  uploadedBytes = 0;
  /** Responses with contents, including thumbnails. */
  reads = 0;
  /** Bytes sent. An aborted response counts in full. */
  readBytes = 0;

  uploaded(bytes: number): void {
    this.uploads++;
    this.uploadedBytes += bytes;
  }

  read(bytes: number): void {
    this.reads++;
    this.readBytes += bytes;
  }
}
