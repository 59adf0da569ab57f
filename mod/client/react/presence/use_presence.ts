/** A room in a component. */
import { useEffect, useMemo, useSyncExternalStore } from "react";
import type { SynclineClient } from "../../client.ts";
import {
  joinRoom,
  type RoomHandle,
  type RoomOptions,
  type RoomState,
  type RoomView,
} from "../../presence/mod.ts";
import { useClient } from "../provider.ts";

const emptyView: RoomView = Object.freeze({ members: [], others: [], self: null, error: null });

/** Is in the room while a component listens. */
class RoomStore {
  readonly #client: SynclineClient | null;
  readonly #room: string | null;
  readonly #options: RoomOptions;
  #state: RoomState = {};
  #handle: RoomHandle | null = null;

  constructor(client: SynclineClient | null, room: string | null, options: RoomOptions) {
    this.#client = client;
    this.#room = room;
    this.#options = options;
  }

  update(state: RoomState): void {
    this.#state = state;
    this.#handle?.update(state);
  }

  readonly subscribe = (listener: () => void): () => void => {
    if (this.#client === null || this.#room === null) return () => {};
    const handle = this.#handle = joinRoom(this.#client, this.#room, this.#state, this.#options);
    const stop = handle.onChange(listener);
    return () => {
      stop();
      handle.leave();
      if (this.#handle === handle) this.#handle = null;
    };
  };

  readonly read = (): RoomView => this.#handle?.view ?? emptyView;
}

/**
 * Joins a room while the component is mounted, and returns the clients in it. Re-renders when a client joins, changes its state or
 * leaves. The state is compared by value, so inline objects are fine. Room `null` joins none.
 *
 * @example
 * ```tsx
 * const [cursor, setCursor] = useState<Point | null>(null);
 * const { others } = usePresence("board 7", { cursor });
 * ```
 */
export function usePresence<State extends RoomState, Info = unknown>(
  room: string | null,
  state: State,
  { throttleMs = 100 }: RoomOptions = {},
): RoomView<State, Info> {
  const client = useClient();
  const store = useMemo(() => new RoomStore(client, room, { throttleMs }), [client, room, throttleMs]);
  // Before the subscription, which joins with this state.
  useEffect(() => store.update(state), [store, state]);
  const view = useSyncExternalStore(store.subscribe, store.read, () => emptyView);
  return view as unknown as RoomView<State, Info>;
}
