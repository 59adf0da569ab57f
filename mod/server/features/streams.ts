/** Output of actions that clients read while it is written: in this process on a server that leads, copied on its followers. */
import { FollowedStreams, streamRoutes, Streams } from "../../streams/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import { apiHeaders } from "../http/app_routes.ts";
import type { StorageFeature } from "./storage.ts";

export interface StreamsFeature extends Feature {
  /** `null` on a server that follows: actions run at the leader. */
  readonly streams: Streams | null;
  /** Ends all responses before the server stops. */
  readonly endReaders: () => void;
}

export function startStreams(
  _: FeatureContext,
  { storage, leaderRequest }: {
    readonly storage: Pick<StorageFeature, "store">;
    readonly leaderRequest: ((path: string, signal: AbortSignal) => Promise<Response>) | null;
  },
): StreamsFeature {
  if (leaderRequest !== null) {
    const followed = new FollowedStreams(leaderRequest);
    return {
      streams: null,
      endReaders: () => followed.endReaders(),
      routes: [followedRoutes(followed)],
      [Symbol.asyncDispose]: () => Promise.resolve(followed[Symbol.dispose]()),
    };
  }
  const streams = new Streams(storage.store);
  const routes = streamRoutes({
    find: (id) => streams.find(id),
    readers: () => streams.readers,
    headers: apiHeaders,
  });
  return {
    streams,
    endReaders: () => streams.endReaders(),
    routes: [{ at: "/api/streams", app: routes, complete: true }],
    ctxActions: streams.actions,
    [Symbol.asyncDispose]: () => Promise.resolve(streams[Symbol.dispose]()),
  };
}

/** Routes of a follower, which reads each stream of the leader once. */
export function followedRoutes(followed: FollowedStreams): NonNullable<Feature["routes"]>[number] {
  const app = streamRoutes({
    find: (id) => followed.find(id),
    readers: () => followed.readers,
    headers: apiHeaders,
  });
  return { at: "/api/streams", app, complete: true };
}
