/** The component with the functions for Svelte. */
import { mount, unmount } from "svelte";
import { SvelteMap } from "svelte/reactivity";
import { toStore } from "svelte/store";
import {
  provideSyncline,
  useAction,
  useAuth,
  useConnectionState,
  useMutation,
  usePaginatedQuery,
  useQuery,
} from "syncline/svelte";
import { api } from "../../react/page/api.ts";
import { type Component, initial, list, type Mount, putLocally } from "./adapter.ts";

export const mountSvelte: Mount = (client, target) => {
  /** Reactive without a compiler. */
  const inputs = new SvelteMap<string, number | null>();
  let component: Component | undefined;
  function App(): Record<string, never> {
    provideSyncline(client);
    const row = useQuery(api.rows.text, () => {
      const rank = inputs.get("rank") ?? null;
      return rank === null ? "skip" : { list, rank };
    }, { initial });
    const pages = usePaginatedQuery(api.rows.page, { list }, { initialNumItems: 1 });
    const put = useMutation(api.rows.put);
    const shout = useAction(api.rows.shout);
    const connection = useConnectionState();
    const auth = useAuth();
    // Reads the values as a template does.
    const follow = (read: () => unknown) => toStore(read).subscribe(() => {});
    const ends = [() => pages.results, () => connection.isConnected, () => auth.status].map(follow);
    let endRow = follow(() => row.data);
    component = {
      setRank: (rank) => inputs.set("rank", rank),
      row: () => ({ data: row.data, error: row.error, isLoading: row.isLoading }),
      pages: () => ({
        ranks: pages.results.map(({ rank }) => rank),
        status: pages.status,
        isLoading: pages.isLoading,
      }),
      loadMore: () => pages.loadMore(),
      put,
      putNow: put.withOptimisticUpdate(putLocally),
      shout: (text) => shout({ text }),
      isConnected: () => connection.isConnected,
      authStatus: () => auth.status,
      rowReader: { stop: () => endRow(), start: () => endRow = follow(() => row.data) },
      unmount: () => {
        endRow();
        for (const end of ends) end();
        void unmount(mounted);
      },
    };
    return {};
  }
  const mounted = mount(App, { target, context: new Map() });
  if (component === undefined) throw new Error("The component was not mounted");
  return component;
};
