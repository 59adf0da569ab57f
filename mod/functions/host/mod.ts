/** Public API of `mod/functions/host`: main's side of the isolates. */
export {
  endingOf,
  nextRequest,
  numberError,
  observeAll,
  type RunEnd,
  type RunKind,
  type RunObserver,
} from "./run_observer.ts";
export { BrokenVersionError } from "./code/code_swaps.ts";
export { IsolateHost } from "./host.ts";
export type { FetchVersion } from "./host_options.ts";
export type { ActionAnswer, CommitSource, LeaderPort, PeerReaders, ServedApp } from "./leader_port.ts";
export { entriesOf, packedEntries } from "./packed_commits.ts";
export { RowsRefusedError } from "./writer/following_writer.ts";
export { type IsolateMemory, usualMemory } from "./process/isolate_memory.ts";
export type { CommitAppender } from "./writer/commit_appender.ts";
export { residentBytes } from "./process/memory_watch.ts";
export type { RouteAnswer, RouteRequest } from "./runners/route_exchange.ts";
export type { RouteRequests } from "./runners/route_requests.ts";
export { wireHeaders } from "../wire/http_headers.ts";
export { RouteTable } from "./runners/route_table.ts";
export type { AppCheck, IsolateRole, WireCron } from "../wire/messages.ts";
