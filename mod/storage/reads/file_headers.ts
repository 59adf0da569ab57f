/** Headers of responses about files (FR1, FR8). */
import {
  contentDisposition,
  defaultContentType,
  essenceOf,
  isShownInline,
  type StoredFile,
} from "../stored_file.ts";

/** Policy of storage responses: may be displayed, cannot run scripts. */
export const contentSecurityPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/** Headers that do not depend on the requested range. */
export interface DescribedFile {
  /** All headers except type, length and range. */
  readonly headers: Headers;
  readonly contentType: string;
}

interface DescribeOptions {
  readonly etag: string;
  /** Cache lifetime in seconds. */
  readonly maxAge: number;
  readonly download: boolean;
  readonly extraHeaders: Readonly<Record<string, string>>;
}

export function describe(
  { contentType, name }: StoredFile,
  { etag, maxAge, download, extraHeaders }: DescribeOptions,
): DescribedFile {
  const inline = !download && isShownInline(contentType);
  const headers = new Headers({
    ...extraHeaders,
    ...commonHeaders({ etag, maxAge }),
    "Accept-Ranges": "bytes",
    "Content-Disposition": contentDisposition(inline ? "inline" : "attachment", name),
  });
  // Browsers show PDF in a built-in viewer, which the policy would break.
  if (!inline || essenceOf(contentType) !== "application/pdf") {
    headers.set("Content-Security-Policy", contentSecurityPolicy);
  }
  return { headers, contentType: contentType ?? defaultContentType };
}

/** Headers of thumbnail responses, including 304. */
export function describeThumbnail({ etag, maxAge, download, extraHeaders }: DescribeOptions): Headers {
  return new Headers({
    ...extraHeaders,
    ...commonHeaders({ etag, maxAge }),
    "Accept-Ranges": "none",
    "Content-Disposition": download ? "attachment" : "inline",
    "Content-Security-Policy": contentSecurityPolicy,
  });
}

/** Entity tag of a thumbnail. */
export function thumbnailEtag({ sha256 }: StoredFile, variant: string): string {
  return `"${sha256}.t1.${variant}"`;
}

/** Headers shared by files and thumbnails. */
function commonHeaders({ etag, maxAge }: { readonly etag: string; readonly maxAge: number }) {
  return {
    "ETag": etag,
    "Cache-Control": `private, max-age=${maxAge}, immutable`,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
  };
}
