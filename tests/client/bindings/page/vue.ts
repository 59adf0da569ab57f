/** The component with the composables for Vue. */
import {
  SynclinePlugin,
  useAction,
  useAuth,
  useConnectionState,
  useMutation,
  usePaginatedQuery,
  useQuery,
} from "syncline/vue";
import { createApp, ref } from "vue";
import { api } from "../../react/page/api.ts";
import { type Component, initial, list, type Mount, putLocally } from "./adapter.ts";

export const mountVue: Mount = (client, root) => {
  const rank = ref<number | null>(null);
  let component: Omit<Component, "unmount"> | undefined;
  const app = createApp({
    setup() {
      const row = useQuery(api.rows.text, () => rank.value === null ? "skip" : { list, rank: rank.value }, {
        initial,
      });
      const pages = usePaginatedQuery(api.rows.page, { list }, { initialNumItems: 1 });
      const put = useMutation(api.rows.put);
      const shout = useAction(api.rows.shout);
      const connection = useConnectionState();
      const { status } = useAuth();
      component = {
        setRank: (next) => rank.value = next,
        row: () => ({ data: row.data.value, error: row.error.value, isLoading: row.isLoading.value }),
        pages: () => ({
          ranks: pages.results.value.map(({ rank }) => rank),
          status: pages.status.value,
          isLoading: pages.isLoading.value,
        }),
        loadMore: () => pages.loadMore(),
        put,
        putNow: put.withOptimisticUpdate(putLocally),
        shout: (text) => shout({ text }),
        isConnected: () => connection.value.isConnected,
        authStatus: () => status.value,
      };
      return () => null;
    },
  });
  app.use(SynclinePlugin, client).mount(root);
  if (component === undefined) throw new Error("The component was not mounted");
  return { ...component, unmount: () => app.unmount() };
};
