/** Keeps app code in runners from file descriptors it did not open, above all the socket to main. */
import process from "node:process";

const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;
const { apply, deleteProperty, ownKeys } = Reflect;

type Method = (...args: unknown[]) => unknown;
type Binding = Readonly<Record<string, { readonly prototype: object }>>;

/** Native handles behind `node:net` and similar modules. */
const HANDLES = [["tcp_wrap", "TCP"], ["pipe_wrap", "Pipe"], ["udp_wrap", "UDP"], [
  "tty_wrap",
  "TTY",
]] as const;

/** Members that adopt or reveal open resources. */
const OPENING: ReadonlySet<PropertyKey> = new Set([
  "constructor",
  "open",
  "openFromRid",
  "takeStream",
  "fdForIpc",
]);

const refuse = (): never => {
  throw new TypeError("A descriptor cannot be taken over by app code");
};

/** Called once in a runner, before app code is loaded. */
export function closeDescriptors(): void {
  const { binding } = process as unknown as { readonly binding: (name: string) => Binding };
  for (const [module, name] of HANDLES) {
    const wrap = apply(binding, process, [module])[name];
    if (wrap === undefined) {
      throw new Error(`${module} cannot be closed to app code in this version of the runtime`);
    }
    for (
      let one: object | null = wrap.prototype;
      one !== null && one !== Object.prototype;
      one = getPrototypeOf(one)
    ) {
      for (const key of ownKeys(one)) {
        if (!OPENING.has(key) || typeof getOwnPropertyDescriptor(one, key)?.value !== "function") continue;
        defineProperty(one, key, { value: refuse, writable: false, configurable: false });
      }
    }
  }
}

/** Connections created by app code. */
const own = new WeakSet<object>();

/** Wraps a connect function. The resulting connection gives no access to others. */
export function connecting(connect: Method): Method {
  return async (...args) => sealed(await apply(connect, undefined, args) as object);
}

/** Wraps `Deno.startTls`. Accepts only connections created through {@linkcode connecting}. */
export function startingTls(startTls: Method): Method {
  return async (conn, options) => {
    if (typeof conn !== "object" || conn === null || !own.has(conn)) {
      throw new TypeError("Deno.startTls takes a connection that Deno.connect made");
    }
    return sealed(await apply(startTls, undefined, [conn, options]) as object);
  };
}

/** Makes the resource id constant and hides the class, which could wrap any resource. */
function sealed(conn: object): object {
  for (const key of ownKeys(conn)) defineProperty(conn, key, { writable: false, configurable: false });
  for (let one = getPrototypeOf(conn); one !== null && one !== Object.prototype; one = getPrototypeOf(one)) {
    deleteProperty(one, "constructor");
  }
  own.add(conn);
  return conn;
}

/** Wraps `fetch` to read bodies as streams: app code could put any resource id into a stream. */
export function fetching(original: typeof fetch): typeof fetch {
  const OwnRequest = Request;
  return async (input, init) => await original(new OwnRequest(input, init));
}
