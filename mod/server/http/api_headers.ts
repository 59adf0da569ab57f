/** Headers of the service's responses. */

/** Response headers that scripts of other origins may read. */
export const exposeHeaders: readonly string[] = [
  "Accept-Ranges",
  "Content-Disposition",
  "Content-Length",
  "Content-Range",
  "ETag",
  "Retry-After",
  "Syncline-Request",
  "Syncline-Request-Id",
];

/** Headers that the router's middleware adds below `/api`, for responses that bypass it. */
export const apiHeaders = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": exposeHeaders.join(","),
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
} as const;
