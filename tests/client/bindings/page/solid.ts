/** The component with the functions for Solid. */
import { createComponent, createResource, createSignal, type JSX, Suspense } from "solid-js";
import { render } from "solid-js/web";
import type { SynclineClient } from "syncline/client";
import {
  SynclineProvider,
  useAction,
  useAuth,
  useConnectionState,
  useMutation,
  usePaginatedQuery,
  useQuery,
} from "syncline/solid";
import { api } from "../../react/page/api.ts";
import { type Component, initial, list, type Mount, putLocally } from "./adapter.ts";

export const mountSolid: Mount = (client, root) => {
  const [rank, setRank] = createSignal<number | null>(null);
  let component: Omit<Component, "unmount"> | undefined;
  function App(): null {
    const row = useQuery(api.rows.text, () => {
      const current = rank();
      return current === null ? "skip" : { list, rank: current };
    }, { initial });
    const pages = usePaginatedQuery(api.rows.page, { list }, { initialNumItems: 1 });
    const put = useMutation(api.rows.put);
    const shout = useAction(api.rows.shout);
    const connection = useConnectionState();
    const auth = useAuth();
    component = {
      setRank,
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
    };
    return null;
  }
  const unmount = render(
    () =>
      createComponent(SynclineProvider, {
        client,
        get children() {
          return createComponent(App, {});
        },
      }),
    root,
  );
  if (component === undefined) throw new Error("The component was not mounted");
  return { ...component, unmount };
};

/** Mounts a component below a `Suspense` that is pending until `loading` resolves. Returns its authentication state. */
export function mountSuspended(
  client: SynclineClient,
  { root, loading }: { readonly root: HTMLElement; readonly loading: Promise<string> },
): { authStatus(): string; unmount(): void } {
  let authStatus = () => "";
  function App(): JSX.Element {
    const auth = useAuth();
    authStatus = () => auth.status;
    const [loaded] = createResource(() => loading);
    return loaded as unknown as JSX.Element;
  }
  const unmount = render(
    () =>
      createComponent(SynclineProvider, {
        client,
        get children() {
          return createComponent(Suspense, {
            get children() {
              return createComponent(App, {});
            },
          });
        },
      }),
    root,
  );
  return { authStatus: () => authStatus(), unmount };
}
