/** Headers that answers of the service have, whoever gives them. */

/** What scripts of other origins may see of an answer, beside what every browser shows them. */
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

/** What the router's middleware gives answers under `/api`, for those that do not pass through it. */
export const apiHeaders = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": exposeHeaders.join(","),
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
} as const;
