/** The bounds of links between a leader and its followers. Units stand last in the names, as in `mod/limits.ts`. */

export const linkLimits = {
  /** Longest frame before both sides have shown that they know the secret. */
  handshakeBytesMax: 4_096,
  /** Longest frame of an authenticated link: a group of commits, or a call with all it brings. */
  frameBytesMax: 268_435_456,
  /** Bytes that may wait to be read by the other side; a side with more behind it is cut off, and begins anew. */
  unsentBytesMax: 268_435_456,
  /** Time for the handshake, for who connects and for who comes from this machine. */
  handshakeMs: 10_000,
  /** The same for who comes over a network, and may be anybody. */
  strangerMs: 2_000,
  /** Connections whose handshake is under way; more are closed at once. */
  handshakesMax: 256,
  /** Of these, those of one address. */
  handshakesOfAddressMax: 32,
  /** A side with nothing to say says so this often. */
  beatMs: 1_000,
  /** Looks, one a beat, without anything from the other side: then it hangs or is gone. */
  silentBeatsMax: 10,
  /** Calls of one follower that the leader has taken and not answered; more are refused as an overload. */
  callsMax: 20_000,
  /** Calls that wait at a follower for the leader's answers, and their bytes; more are refused as an overload. */
  pendingMax: 20_000,
  pendingBytesMax: 134_217_728,
  /** A call that waits for a leader is refused after this; whoever asked may ask again. */
  leaderWaitMs: 15_000,
  /** Connections of followers to a leader on which requests come; more are closed at once. */
  tunnelsMax: 512,
  /** Of these, at the leader, those of one follower; and, at a follower, those of one client's address. */
  tunnelsOfFollowerMax: 256,
  tunnelsOfClientMax: 128,
  /** Bytes of them that are carried at once. */
  tunnelChunkBytes: 65_536,
  /** When one side of such a connection has ended, what the other still says is carried for so long. */
  lingerMs: 2_000,
  /** A leader that is told to stop waits this long for another server to make ready to lead. */
  prepareMs: 10_000,
  /** A leader that is about to end waits this long for calls it has taken. */
  leaveMs: 5_000,
  /** A follower whose link broke tries again after this, and then after twice as long, up to the second. */
  retryMsMin: 50,
  retryMsMax: 2_000,
} as const;
