/** What every answer about a file says of it (FR1, FR8). */
import { defaultContentType, essenceOf, isShownInline } from "../content_type.ts";
import { contentDisposition } from "../file_name.ts";
import { contentSecurityPolicy } from "./security_policy.ts";
import type { StoredFile } from "../stored_file.ts";

/** What an answer says whatever part of the file it sends. */
export interface Described {
  /** All but those about what is sent: type, length, range. */
  readonly headers: Headers;
  readonly contentType: string;
}

export interface DescribeOptions {
  readonly etag: string;
  /** Seconds for which the answer may be kept. */
  readonly maxAge: number;
  readonly download: boolean;
  readonly extraHeaders: Readonly<Record<string, string>>;
}

export function describe(
  { contentType, name }: StoredFile,
  { etag, maxAge, download, extraHeaders }: DescribeOptions,
): Described {
  const inline = !download && isShownInline(contentType);
  const headers = new Headers({
    ...extraHeaders,
    ...commonHeaders({ etag, maxAge }),
    "Accept-Ranges": "bytes",
    "Content-Disposition": contentDisposition(inline ? "inline" : "attachment", name),
  });
  // Browsers show PDF with a viewer of their own, which the policy would keep from working.
  if (!inline || essenceOf(contentType) !== "application/pdf") {
    headers.set("Content-Security-Policy", contentSecurityPolicy);
  }
  return { headers, contentType: contentType ?? defaultContentType };
}

/** What an answer with a thumbnail says, whether it is sent or not. */
export function describeThumbnail({ etag, maxAge, download, extraHeaders }: DescribeOptions): Headers {
  return new Headers({
    ...extraHeaders,
    ...commonHeaders({ etag, maxAge }),
    "Accept-Ranges": "none",
    "Content-Disposition": download ? "attachment" : "inline",
    "Content-Security-Policy": contentSecurityPolicy,
  });
}

/** Entity tag of a file's thumbnail. */
export function thumbnailEtag({ sha256 }: StoredFile, variant: string): string {
  return `"${sha256}.t1.${variant}"`;
}

/** What files and thumbnails have in common. */
function commonHeaders({ etag, maxAge }: { readonly etag: string; readonly maxAge: number }) {
  return {
    "ETag": etag,
    "Cache-Control": `private, max-age=${maxAge}, immutable`,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
  };
}
