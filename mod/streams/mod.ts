/** Public API of `mod/streams`: output of actions that clients read while it is written. */
export { type FetchFromLeader, FollowedStreams } from "./followed_streams.ts";
export { streamRoutes } from "./routes.ts";
export { type StoreFile, Streams, type StreamSummary } from "./streams.ts";
