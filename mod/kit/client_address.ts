/** The address of the client behind trusted proxies. */
import { BlockList, isIP } from "node:net";

/** Finds client addresses; only trusted proxies may set them. */
export class ClientAddresses {
  readonly #trusted = new BlockList();

  /** `trustedProxies`: addresses and CIDR ranges. Throws a `TypeError` for anything else. */
  constructor(trustedProxies: readonly string[]) {
    for (const range of trustedProxies) this.#trust(range);
  }

  /** Returns the client's address: `peer`, or `X-Forwarded-For` read from its end while trusted proxies wrote it. */
  clientOf(peer: string, forwardedFor: string | null): string {
    let client = plainAddress(peer) ?? peer;
    if (forwardedFor === null) return client;
    for (const entry of forwardedFor.split(",").reverse()) {
      if (!this.#isTrusted(client)) return client;
      const address = plainAddress(entry.trim());
      // If a proxy writes no address, such as "unknown", the last known one is used.
      if (address === null) return client;
      client = address;
    }
    return client;
  }

  #trust(range: string): void {
    const [address = "", prefix, ...more] = range.split("/");
    const family = isIP(address);
    const bits = prefix === undefined
      ? (family === 4 ? 32 : 128)
      : /^\d{1,3}$/.test(prefix)
      ? Number(prefix)
      : NaN;
    if (family === 0 || more.length > 0 || !(bits <= (family === 4 ? 32 : 128))) {
      throw new TypeError(`Cannot trust "${range}": give an address or a range such as 10.0.0.0/8`);
    }
    this.#trusted.addSubnet(address, bits, family === 4 ? "ipv4" : "ipv6");
  }

  #isTrusted(address: string): boolean {
    const family = isIP(address);
    return family !== 0 && this.#trusted.check(address, family === 4 ? "ipv4" : "ipv6");
  }
}

/** Returns the key for rate limits: an IPv4 address, or the first 64 bits of an IPv6 address (one customer). */
export function addressKey(address: string): string {
  const plain = plainAddress(address);
  if (plain === null || !plain.includes(":")) return plain ?? address;
  return `${ipv6Groups(plain).slice(0, 4).join(":")}::/64`;
}

/** Parsed addresses, most recent last: most requests come from few clients. */
const plainAddressCache = new Map<string, string | null>();
const PLAIN_KEPT_MAX = 256;

/** Returns an address without port, brackets, zone and IPv4-in-IPv6 prefix; `null` if it is none. */
function plainAddress(text: string): string | null {
  const known = plainAddressCache.get(text);
  if (known !== undefined) return known;
  const plain = madePlain(text);
  if (text.length > ADDRESS_CHARS_MAX) return plain;
  if (plainAddressCache.size >= PLAIN_KEPT_MAX) plainAddressCache.clear();
  plainAddressCache.set(text, plain);
  return plain;
}

/** Longer than an IPv6 address with an embedded IPv4 address and a zone. */
const ADDRESS_CHARS_MAX = 128;

function madePlain(text: string): string | null {
  const bare = text.replace(/^\[(.*)\](?::\d+)?$/, "$1").replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1").replace(
    /%.*$/,
    "",
  );
  const family = isIP(bare);
  if (family === 4) return bare;
  if (family === 0) return null;
  const groups = ipv6Groups(bare);
  if (!/^0:0:0:0:0:ffff:/.test(`${groups.join(":")}:`)) return groups.join(":");
  const [high = 0, low = 0] = groups.slice(6).map((group) => parseInt(group, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/** Returns the eight groups of a valid IPv6 address, in lower-case hexadecimal without leading zeros. */
function ipv6Groups(address: string): string[] {
  const dotted = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_match, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [head = "", tail] = dotted.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array<string>(zeros).fill("0"), ...right].map((group) =>
    parseInt(group, 16).toString(16)
  );
}
