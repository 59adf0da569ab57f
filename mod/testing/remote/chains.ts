/**
 * Calls on a `ctx` in another process, represented as data: `ctx.db.query("tasks").order("desc").take(2)` is a chain of names
 * and arguments that is sent when awaited. Callback arguments, such as the range of an index, run on a recorder and become
 * chains as well.
 */

import { functionPathKey } from "../../protocol/function_reference.ts";

/** A property access, or a method call with arguments. */
export type Link = readonly [name: string, args?: readonly EncodedValue[]];
export type Chain = readonly Link[];

/** A value as JSON, with support for `undefined` and nested chains. */
export type EncodedValue =
  | { readonly plain: unknown }
  | { readonly undefined: true }
  | { readonly object: Readonly<Record<string, EncodedValue>> }
  | { readonly array: readonly EncodedValue[] }
  /** A chain that starts at the argument of a callback. */
  | { readonly chain: Chain }
  /** A callback, represented by its return value. */
  | { readonly calls: EncodedValue };

/** Sends a chain. With `list`, collects the items it iterates over. */
export type SendChain = (chain: Chain, list: boolean) => Promise<unknown>;

const chains = new WeakMap<object, Chain>();

/** Returns a proxy that records property accesses and calls, and sends them when awaited. Arguments have no `send`. */
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
      if (last === undefined) throw new TypeError("Not a function");
      return recorder([...chain.slice(0, -1), [last[0], args.map(encodeValue)]], send);
    },
  });
  chains.set(proxy, chain);
  return proxy;
}

async function* iterate(chain: Chain, send: SendChain | undefined): AsyncGenerator<unknown> {
  if (send !== undefined) yield* await send(chain, true) as unknown[];
}

export function encodeValue(value: unknown): EncodedValue {
  if (value === undefined) return { undefined: true };
  if (typeof value === "object" || typeof value === "function") {
    const chain = value === null ? undefined : chains.get(value);
    if (chain !== undefined) return { chain };
    const path: unknown = value === null ? undefined : Reflect.get(value, functionPathKey);
    if (path !== undefined) return { plain: path };
  }
  if (typeof value === "function") {
    return { calls: encodeValue((value as (of: unknown) => unknown)(recorder([]))) };
  }
  if (Array.isArray(value)) return { array: value.map(encodeValue) };
  if (typeof value !== "object" || value === null || !isPlain(value)) return { plain: value };
  return {
    object: Object.fromEntries(Object.entries(value).map(([name, field]) => [name, encodeValue(field)])),
  };
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** Decodes a value. Chains in it start at `of`. */
export function decodeValue(packed: EncodedValue, of?: unknown): unknown {
  if ("plain" in packed) return packed.plain;
  if ("undefined" in packed) return undefined;
  if ("array" in packed) return packed.array.map((item) => decodeValue(item, of));
  if ("chain" in packed) return applyChain(of, packed.chain);
  if ("calls" in packed) return (argument: unknown) => decodeValue(packed.calls, argument);
  return Object.fromEntries(
    Object.entries(packed.object).map(([name, field]) => [name, decodeValue(field, of)]),
  );
}

/** Applies a chain to a value. */
export function applyChain(start: unknown, chain: Chain): unknown {
  let value = start;
  for (const [name, args] of chain) {
    const found: unknown = Reflect.get(Object(value), name);
    if (args === undefined) {
      value = found;
      continue;
    }
    if (typeof found !== "function") throw new TypeError(`ctx has no function "${name}"`);
    value = Reflect.apply(found, value, args.map((arg) => decodeValue(arg, start)));
  }
  return value;
}
