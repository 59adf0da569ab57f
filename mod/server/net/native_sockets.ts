/**
 * The calls of the system for which the runtime has no words: ending a connection whose other side does not read, and
 * looking at connections on which no request ever came. They are bound once, at the start; after that the right to load
 * native code is given up, so that nothing else can be bound.
 */

/** A connection of this process, by its number among the open files. */
export interface NativeConnection {
  readonly fd: number;
  /** Address and port of the other side, as {@linkcode peerKey} gives it. */
  readonly peer: string;
}

/** What has gone over a connection so far. */
export interface Traffic {
  /** Bytes sent that the other side has acknowledged. */
  readonly acknowledged: number;
  readonly received: number;
}

export interface NativeSockets {
  /** Open files this process may have. */
  readonly filesMax: number;
  /** The connection with this number that came in on a port; `null` when it is none. */
  connection(fd: number, port: number): NativeConnection | null;
  traffic(fd: number): Traffic | null;
  /** Ends a connection at once: what waits to be sent or read is dropped. */
  end(fd: number): void;
}

/** Where the C library lies; the permission sets name the same files. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  x86_64: ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"],
  aarch64: ["/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"],
};

const name = { parameters: ["i32", "buffer", "buffer"], result: "i32" } as const;
const symbols = {
  getpeername: name,
  getsockname: name,
  getsockopt: { parameters: ["i32", "i32", "i32", "buffer", "buffer"], result: "i32" },
  connect: { parameters: ["i32", "buffer", "i32"], result: "i32" },
  getrlimit: { parameters: ["i32", "buffer"], result: "i32" },
} as const;

// Of Linux, where they are the same on all machines the runtime runs on.
const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const INFO_BYTES = 136;
const ACKNOWLEDGED_AT = 120;
const RECEIVED_AT = 128;
const RLIMIT_NOFILE = 7;
const ADDRESS_BYTES = 128;
/** What is planned with where there is no limit at all. */
const FILES_MAX = 1_048_576;

/** Binds the calls; `null` where that is not possible or not allowed. */
export async function openNativeSockets(): Promise<NativeSockets | null> {
  const library = bind();
  await Deno.permissions.revoke({ name: "ffi" });
  return library === null ? null : nativeSockets(library.symbols);
}

type Library = Deno.DynamicLibrary<typeof symbols>;

function bind(): Library | null {
  if (Deno.build.os !== "linux") return null;
  for (const path of LIBRARIES[Deno.build.arch] ?? []) {
    try {
      return Deno.dlopen(path, symbols);
    } catch {
      // Not there, or not allowed: another may be.
    }
  }
  return null;
}

function nativeSockets(calls: Library["symbols"]): NativeSockets {
  const nowhere = new Uint8Array(16);
  const address = new Uint8Array(ADDRESS_BYTES);
  const length = new Uint8Array(4);
  const info = new Uint8Array(INFO_BYTES);
  const view = new DataView(info.buffer);
  const family = () => new Uint16Array(address.buffer, 0, 1)[0];
  const nameOf = (call: "getpeername" | "getsockname", fd: number): boolean => {
    new Uint32Array(length.buffer)[0] = ADDRESS_BYTES;
    return calls[call](fd, address, length) === 0 && (family() === AF_INET || family() === AF_INET6);
  };
  const port = () => ((address[2] ?? 0) << 8) | (address[3] ?? 0);
  return {
    filesMax: filesMax(calls),
    connection(fd, ownPort) {
      if (!nameOf("getsockname", fd) || port() !== ownPort || !nameOf("getpeername", fd)) return null;
      return { fd, peer: `${addressText(address, family() === AF_INET)} ${port()}` };
    },
    traffic(fd) {
      new Uint32Array(length.buffer)[0] = INFO_BYTES;
      if (calls.getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, length) !== 0) return null;
      if ((new Uint32Array(length.buffer)[0] ?? 0) < INFO_BYTES) return null;
      return {
        acknowledged: Number(view.getBigUint64(ACKNOWLEDGED_AT, true)),
        received: Number(view.getBigUint64(RECEIVED_AT, true)),
      };
    },
    // To connect a connected socket to nowhere resets it: what waits in either direction is dropped by the system.
    end: (fd) => void calls.connect(fd, nowhere, nowhere.length),
  };
}

function filesMax(calls: Library["symbols"]): number {
  const limits = new Uint8Array(16);
  if (calls.getrlimit(RLIMIT_NOFILE, limits) !== 0) return FILES_MAX;
  const soft = new DataView(limits.buffer).getBigUint64(0, true);
  return soft > BigInt(FILES_MAX) ? FILES_MAX : Number(soft);
}

function addressText(address: Uint8Array, isFour: boolean): string {
  if (isFour) return address.subarray(4, 8).join(".");
  const view = new DataView(address.buffer, 8);
  const groups = Array.from({ length: 8 }, (_, i) => view.getUint16(i * 2).toString(16));
  return plainAddress(groups.join(":"));
}

/** One spelling for each address of version 6; those of version 4 have one anyway. */
function plainAddress(hostname: string): string {
  if (!hostname.includes(":")) return hostname;
  const [address = ""] = hostname.split("%");
  return URL.parse(`http://[${address}]/`)?.hostname ?? address;
}

/** The key of the other side of a connection, as the runtime tells it. */
export function peerKey({ hostname, port }: Deno.NetAddr): string {
  return `${plainAddress(hostname)} ${port}`;
}
