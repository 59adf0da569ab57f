/**
 * Closes the ways from app code in runners to descriptors and resources that are not its own, main's socket above all: what
 * of the network it has makes connections, and takes none that are there already.
 */
import process from "node:process";

const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;
const { apply, deleteProperty, ownKeys } = Reflect;

type Method = (...args: unknown[]) => unknown;
type Binding = Readonly<Record<string, { readonly prototype: object }>>;

/** The handles below `node:net` and its like, by the runtime's own modules for them. */
const HANDLES = [["tcp_wrap", "TCP"], ["pipe_wrap", "Pipe"], ["udp_wrap", "UDP"], [
  "tty_wrap",
  "TTY",
]] as const;

/** What of them makes a handle of something that is open, or tells what is. */
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

/** Connections that app code made. */
const own = new WeakSet<object>();

/** A function that makes a connection, which then shows no way to another one. */
export function connecting(connect: Method): Method {
  return async (...args) => sealed(await apply(connect, undefined, args) as object);
}

/** `Deno.startTls`, for connections made here. */
export function startingTls(startTls: Method): Method {
  return async (conn, options) => {
    if (typeof conn !== "object" || conn === null || !own.has(conn)) {
      throw new TypeError("Deno.startTls takes a connection that Deno.connect made");
    }
    return sealed(await apply(startTls, undefined, [conn, options]) as object);
  };
}

/** Makes what names its resource constant, and its class out of reach: that would make connections of any resource. */
function sealed(conn: object): object {
  for (const key of ownKeys(conn)) defineProperty(conn, key, { writable: false, configurable: false });
  for (let one = getPrototypeOf(conn); one !== null && one !== Object.prototype; one = getPrototypeOf(one)) {
    deleteProperty(one, "constructor");
  }
  own.add(conn);
  return conn;
}

/**
 * `fetch` that sends no body straight from a resource, whose number app code can put into any stream: what goes by a
 * Request of its own is read as the stream that it is.
 */
export function fetching(original: typeof fetch): typeof fetch {
  const OwnRequest = Request;
  return async (input, init) => await original(new OwnRequest(input, init));
}
