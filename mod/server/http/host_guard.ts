/**
 * The host names that this server answers to. A page whose own name is made to resolve to this server's address (DNS
 * rebinding) is of the same origin as the server to its browser: only the name in `Host` tells the two apart.
 */
import { isIP } from "node:net";

/** A host with an optional port, as RFC 9112 has it in `Host`. */
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._~-]+))(?::\d{0,5})?$/;

/** Longest name in DNS, with a port. */
const HOST_CHARS_MAX = 262;

/** Texts of `Host` whose judgement is kept: most requests name the same few. */
const JUDGED_MAX = 256;

export type HostJudgement = "accepted" | "refused" | "malformed";

export class HostGuard {
  readonly #names: readonly string[];
  readonly #judged = new Map<string, HostJudgement>();

  /** `names`: as in URLs, without ports; `*.example.com` stands for all below it. */
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
    // An address is resolved by nobody.
    if (isIP(name) !== 0) return "accepted";
    const is = (accepted: string) =>
      accepted.startsWith("*.") ? name.endsWith(accepted.slice(1)) : name === accepted;
    return this.#names.some(is) ? "accepted" : "refused";
  }
}

/** Name or address in a `Host`: lower case, without port, brackets and final dot. `null` for what is no host. */
export function hostName(host: string): string | null {
  if (!HOST.test(host)) return null;
  const hostname = URL.parse(`http://${host}/`)?.hostname;
  if (hostname === undefined || hostname === "") return null;
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}
