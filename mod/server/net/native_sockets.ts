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
  /** Sets how much of what comes the system keeps until it is read: the other side can send no more than that ahead. */
  buffer(fd: number, bytes: number): void;
  /** The socket on which this process takes the connections of a port; `null` when there is none among so many files. */
  listening(port: number): number | null;
  /** Lets other processes of this user listen on the port of a socket too; whether that is so now. */
  share(fd: number): boolean;
  /** New connections of a shared port go to one of two sockets from now on, in the order in which they began; whether that is so now. */
  steer(fd: number, to: "first" | "second"): boolean;
  /** Connections that a listening socket has, and that nobody has taken yet. */
  untaken(fd: number): number;
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
  setsockopt: { parameters: ["i32", "i32", "i32", "buffer", "i32"], result: "i32" },
  connect: { parameters: ["i32", "buffer", "i32"], result: "i32" },
  memcpy: { parameters: ["buffer", "buffer", "usize"], result: "u64" },
  getrlimit: { parameters: ["i32", "buffer"], result: "i32" },
} as const;

// Of Linux, where they are the same on all machines the runtime runs on.
const AF_INET = 2;
const AF_INET6 = 10;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const SO_REUSEPORT = 15;
const SO_ACCEPTCONN = 30;
const SO_ATTACH_REUSEPORT_CBPF = 51;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const INFO_BYTES = 136;
/** Of a listening socket: the connections that wait. */
const UNACKED_AT = 24;
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
  const readInfo = (fd: number) => {
    new Uint32Array(length.buffer)[0] = INFO_BYTES;
    return calls.getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, length) === 0 &&
      (new Uint32Array(length.buffer)[0] ?? 0) >= INFO_BYTES;
  };
  const takesConnections = (fd: number) => {
    const value = new Uint32Array(1);
    new Uint32Array(length.buffer)[0] = value.byteLength;
    return calls.getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, new Uint8Array(value.buffer), length) === 0 &&
      value[0] === 1;
  };
  const filters = { first: alwaysOne(calls, 0), second: alwaysOne(calls, 1) };
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
    // To connect a connected socket to nowhere resets it: what waits in either direction is dropped by the system.
    end: (fd) => void calls.connect(fd, nowhere, nowhere.length),
    buffer(fd, bytes) {
      const value = new Uint8Array(new Uint32Array([bytes]).buffer);
      calls.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, value, value.length);
    },
    listening(ownPort) {
      for (let fd = 0; fd < max; fd++) {
        if (nameOf("getsockname", fd) && port() === ownPort && takesConnections(fd)) return fd;
      }
      return null;
    },
    share: (fd) => calls.setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, new Uint8Array([1, 0, 0, 0]), 4) === 0,
    steer(fd, to) {
      const { program, code } = filters[to];
      // The code is read as long as this holds it.
      return code.length > 0 &&
        calls.setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, program, program.length) === 0;
    },
    untaken: (fd) => readInfo(fd) ? view.getUint32(UNACKED_AT, true) : 0,
  };
}

/**
 * A filter of one instruction, "return 0" or "return 1": the kernel asks it which of the sockets of a port gets a connection, in the order
 * in which they began to listen. An answer that names none leaves the choice to the kernel.
 */
function alwaysOne(calls: Library["symbols"], socket: 0 | 1): {
  readonly program: Uint8Array<ArrayBuffer>;
  readonly code: Uint8Array<ArrayBuffer>;
} {
  const BPF_RET = 6;
  const code = new Uint8Array(8);
  new DataView(code.buffer).setUint16(0, BPF_RET, true);
  new DataView(code.buffer).setUint32(4, socket, true);
  const program = new Uint8Array(16);
  new DataView(program.buffer).setUint16(0, 1, true);
  // A copy of nothing tells where something is, with no right beyond the calls that are bound.
  new DataView(program.buffer).setBigUint64(8, BigInt(calls.memcpy(code, code, 0n)), true);
  return { program, code };
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
