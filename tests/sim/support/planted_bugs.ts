/**
 * Bugs put into the hub on purpose, one at a time: what shows that the simulation would find them. Each is a change of one
 * method for as long as the disposable lives.
 */
import { FrameMemo, type SingleUpdate } from "../../../mod/sync/sockets/transition_frame.ts";
import { Invalidation } from "../../../mod/sync/queries/invalidation.ts";
import { QueryTable } from "../../../mod/sync/queries/query_table.ts";
import { SharedQueries } from "../../../mod/sync/queries/shared_queries.ts";
import { type Subscriber, type Version } from "../../../mod/sync/queries/shared_query.ts";
import { SyncConnection } from "../../../mod/sync/sockets/sync_connection.ts";
import { Transitions } from "../../../mod/sync/sockets/transitions.ts";

/** Replaces a method until it is disposed. */
function replaced<Owner extends object, Name extends keyof Owner>(
  owner: Owner,
  { name, by }: { readonly name: Name; readonly by: (original: Owner[Name]) => Owner[Name] },
): Disposable {
  const original = owner[name];
  owner[name] = by(original);
  return {
    [Symbol.dispose]() {
      owner[name] = original;
    },
  };
}

/** Affects every nth call, so that most calls succeed. */
function every(n: number): () => boolean {
  let calls = 0;
  return () => ++calls % n === 0;
}

export const plantedBugs: Record<string, () => Disposable> = {
  /** A commit now and then touches one query too few. */
  "a lost invalidation": () =>
    replaced(Invalidation.prototype as Invalidation<unknown>, {
      name: "stab",
      by: (stab) => {
        const lost = every(40);
        return function (this: Invalidation<unknown>, entry, touch) {
          stab.call(this, entry, (owner) => {
            if (!lost()) touch(owner);
          });
        };
      },
    }),
  /** Computes a diff from the newest result of the last time, not from the result of the socket. */
  "a stale diff base": () =>
    replaced(FrameMemo.prototype, {
      name: "item",
      by: (item) => {
        const newest = new Map<number, SingleUpdate["outcome"]>();
        return function (this: FrameMemo, queryId, { base, outcome, errorIds }) {
          const stale = newest.get(queryId);
          newest.set(queryId, outcome);
          return item.call(this, queryId, { base: base === null ? null : stale ?? base, outcome, errorIds });
        };
      },
    }),
  /** A version that a commit has closed counts as holding on. */
  "a Transition of mixed ts": () =>
    replaced(SharedQueries.prototype, {
      name: "upper",
      by: (upper) => {
        const wrong = every(30);
        return function (this: SharedQueries, version: Version) {
          return wrong() ? this.ts : upper.call(this, version);
        };
      },
    }),
  /** Does not remove a subscription when its socket closes. */
  "a leaked reference": () =>
    replaced(SharedQueries.prototype, {
      name: "unsubscribe",
      by: (unsubscribe) => {
        const leaks = every(50);
        return function (this: SharedQueries, subscriber: Subscriber) {
          if (!leaks()) unsubscribe.call(this, subscriber);
        };
      },
    }),
  /** A result of a scope is found by callers it is not for. */
  "a result for another caller": () =>
    replaced(QueryTable.prototype, {
      name: "findOrCreateInScope",
      by: (at) => {
        const wrong = every(20);
        return function (this: QueryTable, spec, home) {
          return at.call(
            this,
            spec,
            wrong() ? { ...home, identity: { ...home.identity, principal: null } } : home,
          );
        };
      },
    }),
  /** A socket is not notified that a result has arrived or that a Transition is due. */
  "a forgotten Transition": () =>
    replaced(SyncConnection.prototype, {
      name: "needsAdvance",
      by: (needsAdvance) => {
        const forgets = every(50);
        return function (this: SyncConnection) {
          if (!forgets()) needsAdvance.call(this);
        };
      },
    }),
  /** A new socket gets existing results, however old. */
  "a first Transition of long ago": () =>
    replaced(Transitions.prototype, {
      name: "observed",
      by: () =>
        function (this: Transitions) {
          this.lowerMinTs(0);
        },
    }),
  /** A session's end reaches one socket too few. */
  "a session that lives on": () =>
    replaced(SyncConnection.prototype, {
      name: "sessionEnded",
      by: (sessionEnded) => {
        const deaf = every(5);
        return function (this: SyncConnection, ended) {
          if (!deaf()) sessionEnded.call(this, ended);
        };
      },
    }),
};
