/** Requests of the benchmark to the process that makes its load. One line of JSON in each direction. */
import type { AudienceOptions } from "./audience.ts";
import type { CallTimesOptions } from "./call_times.ts";
import type { ClosedLoopResult, HttpLoop, OneAtATime, WebSocketLoop } from "./closed_loop.ts";
import type { TriggerOptions, TriggerResult } from "./deliveries.ts";
import type { EventAudienceOptions } from "./event_audience.ts";
import type { LiveListOptions } from "./live_list.ts";
import type { LogReadersOptions } from "./log_readers.ts";
import type { PacedLoop, PacedTimes } from "./paced.ts";
import type { RawGetsOptions } from "../support/raw_gets.ts";
import type { RelayOptions } from "./relay.ts";
import type { RoomMembersOptions, RoomMembersResult } from "./room_members.ts";
import type { StreamReadersOptions, StreamReadersResult } from "./stream_readers.ts";
import type { ReturningOptions, ReturnResult } from "./returning.ts";

/** Commands by name, with what they take and give. */
export interface LoadCommands {
  webSocketLoop: { takes: WebSocketLoop; gives: ClosedLoopResult };
  httpLoop: { takes: HttpLoop; gives: ClosedLoopResult };
  oneAtATime: { takes: OneAtATime; gives: number[] };
  pacedCalls: { takes: PacedLoop; gives: number };
  pacedTimes: { takes: PacedLoop; gives: PacedTimes };
  openLogReaders: { takes: LogReadersOptions; gives: null };
  /** Gives the bytes that they have read. */
  closeLogReaders: { takes: Record<string, never>; gives: number };
  callTimes: { takes: CallTimesOptions; gives: number[] };
  /** Gives the milliseconds until the last socket has its first results. */
  openAudience: { takes: AudienceOptions & { readonly name: string }; gives: number };
  openEventAudience: { takes: EventAudienceOptions & { readonly name: string }; gives: null };
  triggerAudience: { takes: TriggerOptions & { readonly name: string }; gives: TriggerResult };
  gets: { takes: RawGetsOptions; gives: number };
  relay: { takes: RelayOptions; gives: number[] };
  liveList: { takes: LiveListOptions; gives: number[] };
  openReturning: { takes: ReturningOptions & { readonly name: string }; gives: null };
  awaitReturn: { takes: { readonly name: string }; gives: ReturnResult };
  roomMembers: { takes: RoomMembersOptions; gives: RoomMembersResult };
  streamReaders: { takes: StreamReadersOptions; gives: StreamReadersResult };
  closeAudience: { takes: { readonly name: string }; gives: null };
}

export type LoadRequest = {
  [Name in keyof LoadCommands]: { readonly command: Name; readonly options: LoadCommands[Name]["takes"] };
}[keyof LoadCommands];

export type LoadAnswer = { readonly result: unknown } | { readonly error: string };
