/** Headers between main and a runner, without those of a single connection. */
import { withHelp } from "../../explained.ts";
import { routeLimits } from "../limits.ts";

/** Name and value pairs: `set-cookie` may be repeated. */
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

/** Removes connection headers. @throws RangeError if the headers exceed the limit. */
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
