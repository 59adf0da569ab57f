/** Several processes that serve one app: the link between the one that writes and those that follow it. */
export { Admissions } from "./admissions.ts";
export { EarlyFollowers } from "./early_followers.ts";
export { HandshakeError } from "./link/handshake.ts";
export type { LinkEnd } from "./link/link.ts";
export { Follower, Leader, type LeaderHost, type LeaderOptions } from "./leader.ts";
export { type HereLeader, LeaderCalls } from "./leader_calls.ts";
export { LeaderRoad, type LeadingServer } from "./leader_road.ts";
export { LeaderLink, type LeaderLinkOptions, type Told } from "./leader_link.ts";
export type { FollowerFigures, FollowerReport, FollowerRun, FromLeader, Hello, Welcome } from "./messages.ts";
