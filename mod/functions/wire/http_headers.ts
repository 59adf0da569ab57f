/** Headers between main and a runner. Those that speak about one connection stay on it. */
import { withHelp } from "../../explained.ts";
import { routeLimits } from "../limits.ts";

/** Headers as they travel: `set-cookie` may come more than once. */
export type WireHeaders = readonly (readonly [name: string, value: string])[];

const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The headers without those of the connection. Throws `RangeError` when they are over the limit. */
export function wireHeaders(headers: Headers): WireHeaders {
  const named = new Set(
    (headers.get("connection") ?? "").toLowerCase().split(",").map((name) => name.trim()),
  );
  const kept = [...headers].filter(([name]) => !hopByHop.has(name) && !named.has(name));
  const chars = kept.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (chars > routeLimits.headerCharsMax) {
    throw withHelp(
      new RangeError(
        `The headers have ${chars} characters, more than the limit of ${routeLimits.headerCharsMax}`,
      ),
      "limit",
    );
  }
  return kept;
}
