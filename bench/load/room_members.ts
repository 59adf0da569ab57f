/** Members of one room that change their state at a steady pace, and the time until others receive a change. */
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";

export interface RoomMembersOptions {
  readonly port: number;
  readonly members: number;
  /** Changes of each member in a second. */
  readonly perSecond: number;
  readonly seconds: number;
  /** Members whose frames are read completely. The others only receive theirs. */
  readonly observers: number;
}

export interface RoomMembersResult {
  /** From each change to its delivery at an observer. */
  readonly deliveryMs: number[];
  /** Bytes of the frames that one observer received. */
  readonly bytes: number;
  readonly frames: number;
  /** States that an observer received, as a share of the changes made. */
  readonly receivedShare: number;
}

const OPENING_AT_ONCE = 50;
const OPEN_MS = 60_000;

/** Times are in tenths of a millisecond, so that states are short. */
const STATE_TIME = /"t":(\d+)/g;

export async function roomMembers(options: RoomMembersOptions): Promise<RoomMembersResult> {
  const { port, members, perSecond, seconds, observers } = options;
  const sockets: RawWebSocket[] = [];
  const deliveryMs: number[] = [];
  let [bytes, frames, received, changes] = [0, 0, 0, 0];
  let measuring = false;
  const begunAt = performance.now();
  const now = () => Math.round((performance.now() - begunAt) * 10);
  const join = async (index: number) => {
    const joined = Promise.withResolvers<void>();
    const socket = await RawWebSocket.connect({
      port,
      path: "/api/sync",
      onText: (text) => {
        if (text.startsWith('{"type":"Ping"')) return socket.send('{"type":"Pong"}');
        if (text.startsWith('{"type":"RoomState"')) return joined.resolve();
        if (!text.startsWith('{"type":"RoomChanged"')) return;
        if (!measuring || index >= observers) return;
        const at = now();
        frames++;
        bytes += text.length;
        const [, states = ""] = text.split('"states":');
        for (const [, sentAt] of states.matchAll(STATE_TIME)) {
          received++;
          deliveryMs.push((at - Number(sentAt)) / 10);
        }
      },
      onClose: (code, reason) => joined.reject(new Error(`The server closed the socket: ${code} ${reason}`)),
    });
    sockets.push(socket);
    const connect = { sessionId: crypto.randomUUID(), connectionCount: 0, lastCloseReason: null };
    socket.send(
      JSON.stringify({ type: "Connect", ...connect, clientVersion: "bench", features: ["presence"] }),
    );
    change(socket);
    const timer = setTimeout(() => joined.reject(new Error("A member was not admitted")), OPEN_MS);
    await joined.promise.finally(() => clearTimeout(timer));
  };
  const change = (socket: RawWebSocket) => {
    socket.send(
      `{"type":"SetPresence","room":"bench","state":{"x":${Math.round(Math.random() * 999)},"t":${now()}}}`,
    );
  };
  try {
    for (let first = 0; first < members; first += OPENING_AT_ONCE) {
      const count = Math.min(OPENING_AT_ONCE, members - first);
      await Promise.all(Array.from({ length: count }, (_, i) => join(first + i)));
    }
    // Each member has a moment of its own in the interval.
    const total = members * perSecond * (seconds + 1);
    const startAt = performance.now();
    for (let sent = 0; sent < total;) {
      const elapsed = (performance.now() - startAt) / 1_000;
      measuring = elapsed >= 1;
      for (const due = Math.min(total, elapsed * members * perSecond); sent < due; sent++) {
        const socket = sockets[sent % members];
        if (socket !== undefined) change(socket);
        if (measuring) changes++;
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const receivedShare = received / Math.max(1, changes * observers);
    return { deliveryMs, bytes: bytes / observers, frames: frames / observers, receivedShare };
  } finally {
    for (const socket of sockets) socket.cut();
    await Promise.all(sockets.map((socket) => socket.closed));
  }
}
