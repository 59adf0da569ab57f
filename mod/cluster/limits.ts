/** Limits of the links between a leader and its followers. Units are suffixes, as in `mod/limits.ts`. */

export const linkLimits = {
  /** Longest frame before the follower is authenticated. */
  handshakeBytesMax: 4_096,
  /** Longest frame of an authenticated link: a commit group, or a call with its arguments. */
  frameBytesMax: 268_435_456,
  /** Bytes queued for the other side. Above it, the link is closed, and the follower reconnects and catches up. */
  unsentBytesMax: 268_435_456,
  /** Timeout of the handshake for the connecting side, and for connections of this machine. */
  handshakeMs: 10_000,
  /** Timeout of the handshake for connections from the network, which are not trusted yet. */
  remoteHandshakeMs: 2_000,
  /** Connections in the handshake. Further ones are closed at once. */
  handshakesMax: 256,
  /** Connections in the handshake from one address. */
  handshakesOfAddressMax: 32,
  /** Interval of keepalive messages. */
  keepaliveMs: 1_000,
  /** Consecutive checks without received data after which a link is closed. */
  silentChecksMax: 10,
  /** Calls of one follower in progress at the leader. Further ones are refused as an overload. */
  callsMax: 20_000,
  /** Calls that a follower keeps until the leader answers, and their bytes. Further ones are refused as an overload. */
  pendingMax: 20_000,
  pendingBytesMax: 134_217_728,
  /** Time that a call waits for a leader. Then it is refused, and the caller may retry. */
  leaderWaitMs: 15_000,
  /** Connections with forwarded requests at a leader. Further ones are closed at once. */
  tunnelsMax: 512,
  /** Connections with forwarded requests of one follower. */
  tunnelsOfFollowerMax: 256,
  /** Forwarded requests of one client address at a follower. */
  tunnelsOfClientMax: 128,
  /** Buffer of a forwarded connection. */
  tunnelChunkBytes: 65_536,
  /** Time that the second direction of a forwarded connection stays open after the first has ended. */
  lingerMs: 2_000,
  /** Time that a stopping leader waits for calls in progress. */
  leaveMs: 5_000,
  /** Backoff of a follower that reconnects. */
  retryMsMin: 50,
  retryMsMax: 2_000,
} as const;
