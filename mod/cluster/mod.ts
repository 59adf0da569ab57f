/** Links between the process that writes and the processes that follow it. */
export { type CallHost, CheckedCalls, FollowerConnection } from "./follower_connection.ts";
export { HandshakeError } from "./handshake.ts";
export { Leader, type LeaderHost, type LeaderOptions } from "./leader.ts";
export { LeaderCalls, type LocalLeader } from "./leader_calls.ts";
export { LeaderConnection, type LeaderConnectionOptions } from "./leader_connection.ts";
export { LeaderRooms } from "./leader_rooms.ts";
export { LeaderLink, type LeadingServer } from "./leader_link.ts";
export type { LinkEnd } from "./link.ts";
export type { FollowerFigures, FollowerReport, FollowerRun, FromLeader, Welcome } from "./messages.ts";
export { createCertificate, type LinkCertificate, TlsListener } from "./tls.ts";
