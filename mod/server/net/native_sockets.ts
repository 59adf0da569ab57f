/** System calls that the runtime lacks, bound at the start; the permission for native code is then revoked. */

export interface NativeConnection {
  readonly fd: number;
  /** Remote address and port in the format of {@linkcode peerKey}. */
  readonly peer: string;
}

/** TCP statistics of a connection. */
export interface Traffic {
  /** Bytes that the peer has acknowledged. */
  readonly acknowledged: number;
  readonly received: number;
}

export interface NativeSockets {
  /** Limit of open files of this process. */
  readonly filesMax: number;
  /** Returns the connection that was accepted on `port`, or `null` if the descriptor is something else. */
  connection(fd: number, port: number): NativeConnection | null;
  traffic(fd: number): Traffic | null;
  /** Resets a connection: buffered data is dropped. */
  reset(fd: number): void;
  /** Sets the size of the receive buffer, which limits how much the peer can send before it is read. */
  setReceiveBuffer(fd: number, bytes: number): void;
  /** Returns freed memory of the C library to the system. */
  trimMemory(): void;
}

/** Paths of the C library; the permission sets name the same files. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  x86_64: ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"],
  aarch64: ["/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"],
};

const name = { parameters: ["i32", "buffer", "buffer"], result: "i32" } as const;
const symbols = {
  getpeername: name,
  getsockname: name,
  getsockopt: { parameters: ["i32", "i32", "i32", "buffer", "buffer"], result: "i32" },
  setsockopt: { parameters: ["i32", "i32", "i32", "buffer", "i32"], result: "i32" },
  connect: { parameters: ["i32", "buffer", "i32"], result: "i32" },
  // Missing in C libraries other than glibc.
  malloc_trim: { parameters: ["i32"], result: "i32", optional: true },
  getrlimit: { parameters: ["i32", "buffer"], result: "i32" },
} as const;

// Constants of Linux, the same on all architectures that the runtime supports.
const AF_INET = 2;
const AF_INET6 = 10;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const INFO_BYTES = 136;
const ACKNOWLEDGED_AT = 120;
const RECEIVED_AT = 128;
const RLIMIT_NOFILE = 7;
const ADDRESS_BYTES = 128;
/** Used if the system has no limit. */
const FILES_MAX = 1_048_576;

/** Binds the system calls. Returns `null` where that is not possible or not allowed. */
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
      // Missing or not allowed: try the next path.
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
  const readInfo = (fd: number) => {
    new Uint32Array(length.buffer)[0] = INFO_BYTES;
    return calls.getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, length) === 0 &&
      (new Uint32Array(length.buffer)[0] ?? 0) >= INFO_BYTES;
  };
  const max = filesMax(calls);
  return {
    filesMax: max,
    connection(fd, ownPort) {
      if (!nameOf("getsockname", fd) || port() !== ownPort || !nameOf("getpeername", fd)) return null;
      return { fd, peer: `${addressText(address, family() === AF_INET)} ${port()}` };
    },
    traffic(fd) {
      if (!readInfo(fd)) return null;
      return {
        acknowledged: Number(view.getBigUint64(ACKNOWLEDGED_AT, true)),
        received: Number(view.getBigUint64(RECEIVED_AT, true)),
      };
    },
    // Connecting a connected socket to AF_UNSPEC resets it.
    reset: (fd) => void calls.connect(fd, nowhere, nowhere.length),
    setReceiveBuffer(fd, bytes) {
      const value = new Uint8Array(new Uint32Array([bytes]).buffer);
      calls.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, value, value.length);
    },
    trimMemory: () => void calls.malloc_trim?.(0),
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

/** Normalizes an IPv6 address. */
function plainAddress(hostname: string): string {
  if (!hostname.includes(":")) return hostname;
  const [address = ""] = hostname.split("%");
  return URL.parse(`http://[${address}]/`)?.hostname ?? address;
}

/** Key of a remote address, as reported by the runtime. */
export function peerKey({ hostname, port }: Deno.NetAddr): string {
  return `${plainAddress(hostname)} ${port}`;
}
