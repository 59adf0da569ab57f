/**
 * Checks `Host` headers, which protects against DNS rebinding: a page whose name resolves to this server's address has the
 * same origin as the server in its browser. Only the name in `Host` distinguishes the two.
 */
import { isIP } from "node:net";

/** A host with an optional port (RFC 9112). */
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._~-]+))(?::\d{0,5})?$/;

/** Longest DNS name, with a port. */
const HOST_CHARS_MAX = 262;

/** Cached decisions: most requests use the same few hosts. */
const JUDGED_MAX = 256;

export type HostJudgement = "accepted" | "refused" | "malformed";

export class HostGuard {
  readonly #names: readonly string[];
  readonly #judged = new Map<string, HostJudgement>();

  /** `names` are without ports; `*.example.com` matches all subdomains. */
  constructor(names: readonly string[]) {
    this.#names = [...names, "localhost", "*.localhost"];
  }

  judge(host: string): HostJudgement {
    const known = this.#judged.get(host);
    if (known !== undefined) return known;
    const judgement = host.length > HOST_CHARS_MAX ? "malformed" : this.#judgeNew(host);
    if (this.#judged.size >= JUDGED_MAX) this.#judged.clear();
    if (host.length <= HOST_CHARS_MAX) this.#judged.set(host, judgement);
    return judgement;
  }

  #judgeNew(host: string): HostJudgement {
    const name = hostName(host);
    if (name === null) return "malformed";
    // Addresses are not resolved, so rebinding cannot affect them.
    if (isIP(name) !== 0) return "accepted";
    const is = (accepted: string) =>
      accepted.startsWith("*.") ? name.endsWith(accepted.slice(1)) : name === accepted;
    return this.#names.some(is) ? "accepted" : "refused";
  }
}

/** Name or address in a `Host` header: lower case, without port, brackets and trailing dot. `null` if not valid. */
export function hostName(host: string): string | null {
  if (!HOST.test(host)) return null;
  const hostname = URL.parse(`http://${host}/`)?.hostname;
  if (hostname === undefined || hostname === "") return null;
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}
