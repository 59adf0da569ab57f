/** Parameters of a thumbnail request (TH), and the types of images that have thumbnails. */
import { ServiceError } from "../../errors.ts";
import { storageLimits } from "../limits.ts";

type Fit = "contain" | "cover";

/** Box in pixels, and how the image fits into it. */
export interface ThumbnailSpec {
  readonly width: number;
  readonly height: number;
  readonly fit: Fit;
}

const SIZE = /^([1-9]\d{0,3})(?:x([1-9]\d{0,3}))?$/;

/** Parses `WxH`, or `N` for a square; `null` for anything else and for edges above the limit. */
export function parseSize(text: string): { readonly width: number; readonly height: number } | null {
  const match = SIZE.exec(text);
  if (match === null) return null;
  const width = Number(match[1]);
  const height = Number(match[2] ?? match[1]);
  return Math.max(width, height) > storageLimits.thumbnailEdgeMax ? null : { width, height };
}

/** Throws `invalid_thumbnail`. `sizes`: allowed sizes as `WxH`; `null` allows any. */
export function parseThumbnail(
  { thumb, fit }: { readonly thumb: string; readonly fit: string | undefined },
  sizes: readonly string[] | null,
): ThumbnailSpec {
  const allowed = sizes === null
    ? `edges of 1 to ${storageLimits.thumbnailEdgeMax} pixels`
    : sizes.join(", ") || "none";
  const size = parseSize(thumb);
  if (size === null || (sizes !== null && !sizes.includes(`${size.width}x${size.height}`))) {
    throw new ServiceError(
      "invalid_thumbnail",
      `Invalid thumbnail size: expected WxH or N; allowed sizes are ${allowed}`,
    );
  }
  if (fit !== undefined && fit !== "contain" && fit !== "cover") {
    throw new ServiceError("invalid_thumbnail", "Invalid thumbnail fit: expected contain or cover");
  }
  return { ...size, fit: fit ?? "contain" };
}

/** Name of the variant, used in entity tags and as derivative name. */
export function variantOf({ width, height, fit }: ThumbnailSpec): string {
  return `${width}x${height}.${fit}`;
}

export const thumbnailTypes: ReadonlySet<string> = new Set([
  "image/jpeg",
  "image/png",
  "image/webp",
  "image/gif",
]);

const signatures: readonly (readonly [type: string, pattern: RegExp])[] = [
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/png", /^\x89PNG\r\n/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
];

const SIGNATURE_BYTES = 12;

/** Returns the content type of a supported image, or `null`. */
export function imageTypeOf(bytes: Uint8Array): string | null {
  const head = String.fromCharCode(...bytes.subarray(0, SIGNATURE_BYTES));
  return signatures.find(([, pattern]) => pattern.test(head))?.[0] ?? null;
}
