/**
 * Commits at one server, seen at another: how much later than their answers they come to a socket there. Both ends are in this
 * process, so that both use the same clock.
 */
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { missedPace } from "../support/pace.ts";

export interface RelayOptions {
  /** Port of the server that commits, and of the one where it is watched. */
  readonly from: number;
  readonly to: number;
  /** A mutation that changes the result of the query with each call. */
  readonly mutation: { readonly udfPath: string; readonly args: object };
  readonly query: { readonly udfPath: string; readonly args: object };
  readonly perSecond: number;
  readonly durationMs: number;
}

const OPEN_MS = 10_000;

/** Gives milliseconds from each answer to the commit's delivery; 0 where that was not later. */
export async function relay(options: RelayOptions): Promise<number[]> {
  const { from, to, mutation, query, perSecond, durationMs } = options;
  const delays: number[] = [];
  /** When commits were answered that have not come yet, by their ts, and up to where they have come. */
  const answered = new Map<number, number>();
  let shownTs = 0;
  const opened = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const take = (ts: number) => {
    const now = performance.now();
    shownTs = Math.max(shownTs, ts);
    opened.resolve();
    for (const [known, at] of answered) {
      if (known > ts) continue;
      answered.delete(known);
      delays.push(now - at);
    }
  };
  await using watcher = await RawWebSocket.connect({
    port: to,
    path: "/api/sync",
    onText(text) {
      if (text.startsWith('{"type":"Ping"')) return watcher.send('{"type":"Pong"}');
      if (text.startsWith('{"type":"Transition"')) take(JSON.parse(text).endVersion.ts);
      if (text.startsWith('{"type":"FatalError"')) failed.reject(new Error(text));
    },
  });
  await using writer = await RawWebSocket.connect({
    port: from,
    path: "/api/sync",
    onText(text) {
      if (text.startsWith('{"type":"Ping"')) return writer.send('{"type":"Pong"}');
      if (!text.startsWith('{"type":"MutationResponse"')) return;
      const { success, ts } = JSON.parse(text);
      if (success !== true) failed.reject(new Error(text));
      else if (ts <= shownTs) delays.push(0);
      else answered.set(ts, performance.now());
    },
  });
  for (const socket of [watcher, writer]) socket.send(JSON.stringify(connectMessage()));
  const add = { type: "Add", queryId: 0, ...query };
  watcher.send(
    JSON.stringify({ type: "ModifyQuerySet", baseVersion: 0, newVersion: 1, modifications: [add] }),
  );
  const late = setTimeout(() => failed.reject(new Error("Nothing was shown")), OPEN_MS);
  await Promise.race([opened.promise, failed.promise]);
  clearTimeout(late);
  const startedAt = performance.now();
  let sent = 0;
  for (; performance.now() - startedAt < durationMs; sent++) {
    const pauseMs = startedAt + sent * 1_000 / perSecond - performance.now();
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    writer.send(JSON.stringify({ type: "Mutation", requestId: sent, ...mutation }));
  }
  const missed = missedPace({ done: sent, perSecond, ms: performance.now() - startedAt });
  if (missed !== null) throw new Error(missed);
  while (delays.length < sent) {
    await Promise.race([new Promise((resolve) => setTimeout(resolve, 5)), failed.promise]);
    if (performance.now() - startedAt > durationMs + OPEN_MS) {
      throw new Error(`${sent - delays.length} of ${sent} commits did not come`);
    }
  }
  return delays;
}

function connectMessage(): object {
  const sessionId = crypto.randomUUID();
  return { type: "Connect", sessionId, connectionCount: 0, lastCloseReason: null, clientVersion: "bench" };
}
