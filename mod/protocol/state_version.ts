/** The client's view of the world, as one version (PC3). Browser-safe. */

/** Three counters that every Transition moves from `startVersion` to `endVersion`. */
export interface StateVersion {
  /** Raised by the client with each ModifyQuerySet. */
  readonly querySet: number;
  /** Raised by the client with each Authenticate. */
  readonly identity: number;
  /** Global commit timestamp. */
  readonly ts: number;
}

/** The version of a socket that has just opened. */
export const initialVersion: StateVersion = { querySet: 0, identity: 0, ts: 0 };

/** Whether two versions are the same in all three counters. */
export function sameVersion(a: StateVersion, b: StateVersion): boolean {
  return a.querySet === b.querySet && a.identity === b.identity && a.ts === b.ts;
}
