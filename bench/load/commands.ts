/** Commands of the load process. Options and results are sent as one line of JSON each. */
import { callTimes } from "./call_times.ts";
import { httpLoop, sequentialCalls, webSocketLoop } from "./closed_loop.ts";
import type { TriggerOptions, TriggerResult } from "./deliveries.ts";
import { deliveryDelays } from "./delivery_delays.ts";
import { EventSubscribers, type EventSubscribersOptions } from "./event_subscribers.ts";
import { liveList } from "./live_list.ts";
import { LogReaders, type LogReadersOptions } from "./log_readers.ts";
import { pacedCalls } from "./paced_calls.ts";
import { rawGets } from "./raw_gets.ts";
import {
  ReconnectingSockets,
  type ReconnectingSocketsOptions,
  type ReconnectResult,
} from "./reconnecting_sockets.ts";
import { roomMembers } from "./room_members.ts";
import { streamReaders } from "./stream_readers.ts";
import { SubscriberSockets, type SubscriberSocketsOptions } from "./subscriber_sockets.ts";

interface Named {
  readonly name: string;
}

const subscribers = new Map<string, SubscriberSockets | EventSubscribers>();
let reconnecting: ReconnectingSockets | null = null;
let logReaders: LogReaders | null = null;

function subscribersNamed(name: string): SubscriberSockets | EventSubscribers {
  const found = subscribers.get(name);
  if (found === undefined) throw new Error(`No subscribers named "${name}"`);
  return found;
}

export const commands = {
  callTimes,
  deliveryDelays,
  httpLoop,
  liveList,
  pacedCalls,
  rawGets,
  roomMembers,
  sequentialCalls,
  streamReaders,
  webSocketLoop,

  /** Returns the milliseconds until the last socket has its first results. */
  async openSubscribers({ name, ...options }: SubscriberSocketsOptions & Named): Promise<number> {
    const startedAt = performance.now();
    subscribers.set(name, await SubscriberSockets.open(options));
    return performance.now() - startedAt;
  },
  async openEventSubscribers({ name, ...options }: EventSubscribersOptions & Named): Promise<void> {
    subscribers.set(name, await EventSubscribers.open(options));
  },
  async trigger({ name, ...options }: TriggerOptions & Named): Promise<TriggerResult> {
    return await subscribersNamed(name).trigger(options);
  },
  async closeSubscribers({ name }: Named): Promise<void> {
    await subscribersNamed(name)[Symbol.asyncDispose]();
    subscribers.delete(name);
  },

  async openReconnecting(options: ReconnectingSocketsOptions): Promise<void> {
    reconnecting = await ReconnectingSockets.open(options);
  },
  async awaitReconnect(_: Record<string, never>): Promise<ReconnectResult> {
    if (reconnecting === null) throw new Error("No sockets are open");
    return await reconnecting.reconnected();
  },

  async openLogReaders(options: LogReadersOptions): Promise<void> {
    logReaders = await LogReaders.open(options);
  },
  async closeLogReaders(_: Record<string, never>): Promise<void> {
    await logReaders?.[Symbol.asyncDispose]();
    logReaders = null;
  },
};

export type LoadCommands = typeof commands;

export type LoadAnswer = { readonly result?: unknown } | { readonly error: string };
