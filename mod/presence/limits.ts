/** Limits of presence. Names end with the unit, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

export const presenceLimits = {
  /** Rooms of one socket. Further ones are refused. */
  roomsMax: 32,
  /** Authorizations of one socket in flight. Further rooms are refused. */
  authorizationsMax: 64,
  /** Members of one room. Further ones are refused. */
  membersMax: 2_000,
  /** State of a member, as JSON. Longer ones are refused, and the member keeps its state. */
  stateCharsMax: 2 * KiB,
  /** Result of the app's function for a member, as JSON. */
  infoCharsMax: 2 * KiB,
  /** Messages of one socket; more are a FatalError. */
  updates: { burst: 1_000, perSecond: 400 },
  /** A member whose connection was lost leaves after this time, unless its client comes back. */
  graceMs: 5_000,
  /** Interval of the check for such members. */
  graceCheckMs: 500,
  /** Changes of a room are sent together, at this interval or, in rooms with many members, a longer one. */
  frameMs: 50,
  /** Members of a room for each millisecond of its interval. */
  membersPerFrameMs: 20,
  /** Longest interval, for rooms that exceed `frameCharsPerMs`. */
  frameMsMax: 1_000,
  /** Characters that one room sends to all of its sockets in a millisecond, on average. */
  frameCharsPerMs: 256 * KiB,
  /** A failed authorization that may succeed later is repeated after this time. */
  authorizeAgainMs: 1_000,
  /** A follower sends its changes to the leader together, at this interval. */
  followerMs: 20,
  /** Bytes queued on a link above which each side sends only the newest states. */
  linkBytesMax: 8 * MiB,
  /** Changes of different members that a follower keeps for a slow leader. */
  unsentChangesMax: 50_000,
  /** Rooms that the dashboard shows, and members of each. */
  shownRoomsMax: 100,
  shownMembersMax: 100,
} as const;
