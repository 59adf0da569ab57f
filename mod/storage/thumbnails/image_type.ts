/** Detects image types from their first bytes. */

/** Content types that thumbnails can be made of. */
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
