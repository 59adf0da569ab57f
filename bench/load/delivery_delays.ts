/** Commits at one server and their delivery by another. One process measures both ends, so they share a clock. */
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { pause } from "../../tests/support/waiting.ts";
import { missedPace } from "../support/pace.ts";
import { type Call, connectMessage, mutationMessage, pong, subscribeMessage } from "./messages.ts";

export interface DeliveryDelaysOptions {
  /** Port of the server that commits. */
  readonly from: number;
  /** Port of the server that delivers. */
  readonly to: number;
  /** Each call changes the result of the query. */
  readonly mutation: Call;
  readonly query: Call;
  readonly perSecond: number;
  readonly durationMs: number;
}

const FIRST_RESULT_MS_MAX = 10_000;

/** Returns the milliseconds from each answer to the delivery of its commit; 0 if the delivery came first. */
export async function deliveryDelays(options: DeliveryDelaysOptions): Promise<number[]> {
  const { from, to, mutation, query, perSecond, durationMs } = options;
  const delays: number[] = [];
  /** Times of answers whose commits are not delivered yet, by `ts`. */
  const answeredAt = new Map<number, number>();
  let deliveredTs = 0;
  const opened = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const onDelivery = (ts: number) => {
    const now = performance.now();
    deliveredTs = Math.max(deliveredTs, ts);
    opened.resolve();
    for (const [answeredTs, at] of answeredAt) {
      if (answeredTs > ts) continue;
      answeredAt.delete(answeredTs);
      delays.push(now - at);
    }
  };
  await using reader = await RawWebSocket.connect({
    port: to,
    path: "/api/sync",
    onText(text) {
      if (text.startsWith('{"type":"Ping"')) return reader.send(pong);
      if (text.startsWith('{"type":"Transition"')) onDelivery(JSON.parse(text).endVersion.ts);
      if (text.startsWith('{"type":"FatalError"')) failed.reject(new Error(text));
    },
  });
  await using writer = await RawWebSocket.connect({
    port: from,
    path: "/api/sync",
    onText(text) {
      if (text.startsWith('{"type":"Ping"')) return writer.send(pong);
      if (!text.startsWith('{"type":"MutationResponse"')) return;
      const { success, ts } = JSON.parse(text);
      if (success !== true) failed.reject(new Error(text));
      else if (ts <= deliveredTs) delays.push(0);
      else answeredAt.set(ts, performance.now());
    },
  });
  for (const socket of [reader, writer]) socket.send(connectMessage());
  reader.send(subscribeMessage([query]));
  const timer = setTimeout(() => failed.reject(new Error("No first result")), FIRST_RESULT_MS_MAX);
  await Promise.race([opened.promise, failed.promise]);
  clearTimeout(timer);
  const startedAt = performance.now();
  let sent = 0;
  for (; performance.now() - startedAt < durationMs; sent++) {
    const pauseMs = startedAt + sent * 1_000 / perSecond - performance.now();
    if (pauseMs > 0) await pause(pauseMs);
    writer.send(mutationMessage(mutation, sent));
  }
  const missed = missedPace({ done: sent, perSecond, ms: performance.now() - startedAt });
  if (missed !== null) throw new Error(missed);
  while (delays.length < sent) {
    await Promise.race([pause(5), failed.promise]);
    if (performance.now() - startedAt > durationMs + FIRST_RESULT_MS_MAX) {
      throw new Error(`${sent - delays.length} of ${sent} commits were not delivered`);
    }
  }
  return delays;
}
