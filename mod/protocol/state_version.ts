/** The version of the state that a client shows (PC3). Browser-safe. */

/** Three counters that every Transition moves from `startVersion` to `endVersion`. */
export interface StateVersion {
  /** Incremented by the client with each ModifyQuerySet. */
  readonly querySet: number;
  /** Incremented by the client with each Authenticate. */
  readonly identity: number;
  /** Global commit timestamp. */
  readonly ts: number;
}

/** The version of a new socket. */
export const initialVersion: StateVersion = { querySet: 0, identity: 0, ts: 0 };

export function sameVersion(a: StateVersion, b: StateVersion): boolean {
  return a.querySet === b.querySet && a.identity === b.identity && a.ts === b.ts;
}
