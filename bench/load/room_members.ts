/** Members of a room that change their state at a fixed rate, and the delay until other members receive the changes. */
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { pause } from "../../tests/support/waiting.ts";
import { connectMessage, pong } from "./messages.ts";

export interface RoomMembersOptions {
  readonly port: number;
  readonly members: number;
  /** Changes of each member per second. */
  readonly perSecond: number;
  readonly seconds: number;
  /** Members that parse their frames. The others only receive them. */
  readonly observers: number;
}

export interface RoomMembersResult {
  /** From each change to its arrival at an observer. */
  readonly deliveryMs: number[];
  /** Bytes and number of frames that each observer received. */
  readonly bytes: number;
  readonly frames: number;
  /** States that each observer received, as a share of the changes. */
  readonly receivedShare: number;
}

const CONCURRENT_OPENS = 50;
const JOIN_MS_MAX = 60_000;
const WARM_UP_SECONDS = 1;

/** Times are in tenths of a millisecond, to keep states short. */
const STATE_TIME = /"t":(\d+)/g;

export async function roomMembers(options: RoomMembersOptions): Promise<RoomMembersResult> {
  const { port, members, perSecond, seconds, observers } = options;
  const sockets: RawWebSocket[] = [];
  const deliveryMs: number[] = [];
  let [bytes, frames, received, changes] = [0, 0, 0, 0];
  let measuring = false;
  const epoch = performance.now();
  const now = () => Math.round((performance.now() - epoch) * 10);
  const change = (socket: RawWebSocket) => {
    socket.send(
      `{"type":"SetPresence","room":"bench","state":{"x":${Math.round(Math.random() * 999)},"t":${now()}}}`,
    );
  };
  const join = async (index: number) => {
    const joined = Promise.withResolvers<void>();
    const socket = await RawWebSocket.connect({
      port,
      path: "/api/sync",
      onText: (text) => {
        if (text.startsWith('{"type":"Ping"')) return socket.send(pong);
        if (text.startsWith('{"type":"RoomState"')) return joined.resolve();
        if (!text.startsWith('{"type":"RoomChanged"') || !measuring || index >= observers) return;
        const receivedAt = now();
        frames++;
        bytes += text.length;
        const [, states = ""] = text.split('"states":');
        for (const [, sentAt] of states.matchAll(STATE_TIME)) {
          received++;
          deliveryMs.push((receivedAt - Number(sentAt)) / 10);
        }
      },
      onClose: (code, reason) => joined.reject(new Error(`The server closed the socket: ${code} ${reason}`)),
    });
    sockets.push(socket);
    socket.send(connectMessage(["presence"]));
    change(socket);
    const timer = setTimeout(() => joined.reject(new Error("A member did not join in time")), JOIN_MS_MAX);
    await joined.promise.finally(() => clearTimeout(timer));
  };
  try {
    const indexes = Array(members).keys();
    await Promise.all(Array.from({ length: CONCURRENT_OPENS }, async () => {
      for (const index of indexes) await join(index);
    }));
    // The changes of the members are spread evenly over the interval.
    const total = members * perSecond * (seconds + WARM_UP_SECONDS);
    const startAt = performance.now();
    for (let sent = 0; sent < total;) {
      const elapsed = (performance.now() - startAt) / 1_000;
      measuring = elapsed >= WARM_UP_SECONDS;
      for (const due = Math.min(total, elapsed * members * perSecond); sent < due; sent++) {
        const socket = sockets[sent % members];
        if (socket !== undefined) change(socket);
        if (measuring) changes++;
      }
      await pause(2);
    }
    const receivedShare = received / Math.max(1, changes * observers);
    return { deliveryMs, bytes: bytes / observers, frames: frames / observers, receivedShare };
  } finally {
    for (const socket of sockets) socket.cut();
    await Promise.all(sockets.map((socket) => socket.closed));
  }
}
