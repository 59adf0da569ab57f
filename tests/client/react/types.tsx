/** The types of the hooks: inferred types and compile errors. `deno check` is the test. */
import { SynclineHttpClient } from "syncline/client";
import {
  preloadQuery,
  useAction,
  useMutation,
  usePaginatedQuery,
  usePreloadedQuery,
  useQueries,
  useQuery,
  useSuspenseQuery,
  useSyncline,
} from "syncline/react";
import { api } from "./page/api.ts";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
function same<A, B>(..._proof: Same<A, B> extends true ? [] : [never]): void {}

interface Row {
  readonly list: string;
  readonly rank: number;
  readonly text: string;
}

// Never called: components that must or must not compile.
export async function Inferred() {
  const text = useQuery(api.rows.text, { list: "a", rank: 1 });
  same<typeof text, string | null | undefined>();
  const maybe: string | null = null;
  useQuery(api.rows.all, maybe === null ? "skip" : { list: maybe });
  useQuery(api.rows.me);
  useQuery(api.rows.me, "skip");
  const loaded = useSuspenseQuery(api.rows.text, { list: "a", rank: 1 });
  same<typeof loaded, string | null>();
  const unknown = useQuery("rows:text", { list: "a" });
  same<typeof unknown, unknown>();

  const { one, user } = useQueries({
    one: { query: api.rows.text, args: { list: "a", rank: 1 } },
    user: { query: api.rows.me, args: "skip" },
  });
  same<typeof one, string | null | Error | undefined>();
  void user;

  const { results, loadMore } = usePaginatedQuery(api.rows.page, { list: "a" }, { initialNumItems: 5 });
  const row: Row | undefined = results[0];
  void row;
  loadMore(3);
  usePaginatedQuery(api.rows.page, "skip", { initialNumItems: 5 });
  usePaginatedQuery(api.rows.ownPage, {}, { initialNumItems: 5 });

  const put = useMutation(api.rows.put).withOptimisticUpdate((store, { list, rank }) => {
    same<typeof rank, number>();
    const rows = store.getQuery(api.rows.all, { list });
    store.setQuery(api.rows.all, { list }, (rows ?? []).slice(1));
  });
  await put({ list: "a", rank: 1, text: "x" });
  const shouted = await useAction(api.rows.shout)({ text: "a" });
  same<typeof shouted, string>();

  const preloaded = await preloadQuery(new SynclineHttpClient("http://localhost"), api.rows.all, {
    list: "a",
  });
  const rows: readonly Row[] = usePreloadedQuery(preloaded);
  void rows;
  await useSyncline().mutation(api.rows.put, { list: "a", rank: 1, text: "x" });
}

export async function Refused() {
  // @ts-expect-error -- an argument is missing
  useQuery(api.rows.text, { list: "a" });
  // @ts-expect-error -- the arguments are missing
  useQuery(api.rows.text);
  // @ts-expect-error -- a mutation is no query
  useQuery(api.rows.put, { list: "a", rank: 1, text: "x" });
  // @ts-expect-error -- a query that suspends cannot be skipped
  useSuspenseQuery(api.rows.text, "skip");
  // @ts-expect-error -- an argument has the wrong type
  useQueries({ one: { query: api.rows.text, args: { list: "a", rank: "1" } } });
  // @ts-expect-error -- the query returns no pages
  usePaginatedQuery(api.rows.all, { list: "a" }, { initialNumItems: 5 });
  // @ts-expect-error -- the hook adds paginationOpts
  usePaginatedQuery(api.rows.page, { list: "a", paginationOpts: null }, { initialNumItems: 5 });
  // @ts-expect-error -- an argument is missing
  await useMutation(api.rows.put)({ list: "a" });
  // @ts-expect-error -- a query is no action
  useAction(api.rows.text);
}
