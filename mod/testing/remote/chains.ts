/**
 * Calls on a `ctx` that lives in another process, as data: `ctx.db.query("tasks").order("desc").take(2)` is a chain of names
 * and arguments. It is sent when it is awaited. What a call takes a function for, such as the range of an index, is tried on
 * a recorder, and becomes a chain as well.
 */

/** A property, or a method with its arguments. */
export type Link = readonly [name: string, args?: readonly Packed[]];
export type Chain = readonly Link[];

/** A value as JSON: with `undefined`, and with chains in it. */
export type Packed =
  | { readonly plain: unknown }
  | { readonly undefined: true }
  | { readonly object: Readonly<Record<string, Packed>> }
  | { readonly array: readonly Packed[] }
  /** Of what the function of an argument was called with. */
  | { readonly chain: Chain }
  /** A function, by the value it gives back. */
  | { readonly calls: Packed };

/** Sends a chain; `list`: what it iterates over is wanted. */
export type SendChain = (chain: Chain, list: boolean) => Promise<unknown>;

const chains = new WeakMap<object, Chain>();

/** Something whose properties and calls are recorded, and sent once it is awaited. `send` is absent in arguments. */
export function recorder(chain: Chain, send?: SendChain): unknown {
  const target = () => {};
  const proxy = new Proxy(target, {
    get(_target, name) {
      if (name === Symbol.asyncIterator) return () => iterate(chain, send);
      if (typeof name === "symbol") return undefined;
      if (name !== "then") return recorder([...chain, [name]], send);
      if (send === undefined || chain.length === 0) return undefined;
      const sent = send(chain, false);
      return sent.then.bind(sent);
    },
    apply(_target, _this, args: unknown[]) {
      const last = chain.at(-1);
      if (last === undefined) throw new TypeError("It is not a function");
      return recorder([...chain.slice(0, -1), [last[0], args.map(pack)]], send);
    },
  });
  chains.set(proxy, chain);
  return proxy;
}

async function* iterate(chain: Chain, send: SendChain | undefined): AsyncGenerator<unknown> {
  if (send !== undefined) yield* await send(chain, true) as unknown[];
}

export function pack(value: unknown): Packed {
  if (value === undefined) return { undefined: true };
  if (typeof value === "object" || typeof value === "function") {
    const chain = value === null ? undefined : chains.get(value);
    if (chain !== undefined) return { chain };
  }
  if (typeof value === "function") return { calls: pack((value as (of: unknown) => unknown)(recorder([]))) };
  if (Array.isArray(value)) return { array: value.map(pack) };
  if (typeof value !== "object" || value === null || !isPlain(value)) return { plain: value };
  return { object: Object.fromEntries(Object.entries(value).map(([name, field]) => [name, pack(field)])) };
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** The value again; chains in it belong to `of`. */
export function unpack(packed: Packed, of?: unknown): unknown {
  if ("plain" in packed) return packed.plain;
  if ("undefined" in packed) return undefined;
  if ("array" in packed) return packed.array.map((item) => unpack(item, of));
  if ("chain" in packed) return follow(of, packed.chain);
  if ("calls" in packed) return (argument: unknown) => unpack(packed.calls, argument);
  return Object.fromEntries(Object.entries(packed.object).map(([name, field]) => [name, unpack(field, of)]));
}

/** Does what a chain says. */
export function follow(start: unknown, chain: Chain): unknown {
  let value = start;
  for (const [name, args] of chain) {
    const found: unknown = Reflect.get(Object(value), name);
    if (args === undefined) {
      value = found;
      continue;
    }
    if (typeof found !== "function") throw new TypeError(`ctx has no function "${name}" there`);
    value = Reflect.apply(found, value, args.map((arg) => unpack(arg, start)));
  }
  return value;
}
