/** Scenarios of lists in pages: compared with the full list at every single render. */
import { useEffect } from "react";
import { SynclineHttpClient } from "syncline/client";
import { type PaginatedQuery, useAuth, usePaginatedQuery, useQuery } from "syncline/react";
import { Random } from "../../../sim/support/random.ts";
import { api } from "./api.ts";
import { Boundary, mount, pause, until } from "./support.tsx";

interface Row {
  readonly _id: string;
  readonly rank: number;
  readonly text: string;
}

/** Invalid states that a list rendered, and its last state. */
class Watcher {
  readonly faults: string[] = [];
  renders = 0;
  list: PaginatedQuery<Row> | null = null;

  see(list: PaginatedQuery<Row>, all: readonly Row[] | undefined): void {
    this.list = list;
    this.renders++;
    if (all === undefined || list.status === "LoadingFirstPage") return;
    const ranks = list.results.map(({ rank }) => rank).join(" ");
    const expected = all.slice(0, list.results.length).map(({ rank }) => rank).join(" ");
    if (ranks !== expected) this.faults.push(`shown ${ranks} instead of ${expected}`);
    if (list.status === "Exhausted" && list.results.length !== all.length) this.faults.push("not the end");
    if (list.status === "CanLoadMore" && list.results.length === 0 && all.length > 0) {
      this.faults.push("no row");
    }
  }
}

function List({ name, size, watcher }: { name: string; size: number; watcher: Watcher }) {
  const list = usePaginatedQuery(api.rows.page, { list: name }, { initialNumItems: size });
  const all = useQuery(api.rows.all, { list: name });
  useEffect(() => watcher.see(list, all));
  return null;
}

/** Random changes by another client, most of them at page borders, while pages load. */
export async function random({ seed, changes, size }: { seed: number; changes: number; size: number }) {
  const random = new Random(seed);
  const name = `random ${seed}`;
  const other = new SynclineHttpClient(location.origin);
  const present = new Set(Array.from({ length: 30 }, (_, i) => i * 10));
  await other.mutation(api.rows.fill, { list: name, ranks: [...present] });
  const watcher = new Watcher();
  const { wire, end } = mount(<List name={name} size={size} watcher={watcher} />);
  await until(() => watcher.list?.status === "CanLoadMore");
  for (let n = 0; n < changes; n++) {
    const shown = watcher.list?.results ?? [];
    // Near a border half of the time: of a page, or of the rendered range.
    const border = shown[Math.min(shown.length - 1, size * random.below(6))]?.rank ?? 0;
    const near = () => random.chance(0.5) ? border + random.below(7) - 3 : random.below(400);
    const crowd = random.chance(0.1) ? size * 3 : random.below(3);
    const [add, remove] = [new Set<number>(), new Set<number>()];
    for (let i = 0; i < crowd; i++) {
      const rank = near();
      if (!present.has(rank)) add.add(rank);
    }
    const gone = random.chance(0.1) ? size * 3 : random.below(3);
    const start = near();
    for (const rank of [...present].sort((a, b) => a - b)) {
      if (remove.size < gone && rank >= start) remove.add(rank);
    }
    for (const rank of add) present.add(rank);
    for (const rank of remove) present.delete(rank);
    const changed = other.mutation(api.rows.change, { list: name, add: [...add], remove: [...remove] });
    if (random.chance(0.4)) watcher.list?.loadMore(1 + random.below(size * 2));
    await changed;
    if (random.chance(0.3)) await pause(random.below(15));
  }
  for (let round = 0; round < 400 && watcher.list?.status !== "Exhausted"; round++) {
    watcher.list?.loadMore();
    await until(() => !watcher.list?.isLoading);
    await pause(10);
  }
  const expected = [...present].sort((a, b) => a - b);
  await until(() => watcher.list?.results.length === expected.length);
  /** Live queries, and the size of each page as a multiple of its number of items. */
  const measured = async () => {
    await pause(100);
    const live = wire.live.size;
    const sizes: number[] = [];
    for (const { udfPath, args } of [...wire.live.values()]) {
      if (udfPath !== "rows:page") continue;
      const { page } = await other.query("rows:page", args) as { page: unknown[] };
      sizes.push(page.length / (args["paginationOpts"] as { numItems: number }).numItems);
    }
    return { live, sizes };
  };
  let { live, sizes } = await measured();
  // A page that has grown is live until its parts have arrived.
  for (let tries = 0; tries < 100 && Math.max(...sizes) > 2; tries++) ({ live, sizes } = await measured());
  const last = watcher.list?.results.map(({ rank }) => rank);
  await end();
  return {
    faults: watcher.faults,
    isComplete: JSON.stringify(last) === JSON.stringify(expected),
    rows: expected.length,
    renders: watcher.renders,
    pages: sizes.length,
    largestPage: Math.max(...sizes),
    live,
    liveAfter: wire.live.size,
  };
}

/** Rows keep their identity when pages change, and `loadMore` stays the same function. */
export async function identity() {
  const other = new SynclineHttpClient(location.origin);
  await other.mutation(api.rows.fill, { list: "identity", ranks: Array.from({ length: 20 }, (_, i) => i) });
  const watcher = new Watcher();
  const { client, end } = mount(<List name="identity" size={5} watcher={watcher} />);
  await until(() => watcher.list?.status === "CanLoadMore");
  const { results, loadMore } = watcher.list as PaginatedQuery<Row>;
  loadMore();
  loadMore(3);
  await until(() => watcher.list?.results.length === 10);
  await client.mutation(api.rows.put, { list: "identity", rank: 2, text: "new" });
  const now = watcher.list as PaginatedQuery<Row>;
  const kept = results.map((row, i) => row === now.results[i]);
  const before = watcher.renders;
  await client.mutation(api.rows.put, { list: "identity", rank: 17, text: "out of sight" });
  await pause(50);
  // The complete list renders the component once; the list in pages returns the same as before.
  const isSameList = watcher.list === now;
  await end();
  return { kept, sameLoadMore: now.loadMore === loadMore, isSameList, renders: watcher.renders - before };
}

/** Pages whose query reads other rows for another user: the list restarts when a user signs in. */
export async function foreign() {
  let shown: PaginatedQuery<Row> | null = null;
  let auth: ReturnType<typeof useAuth> | null = null;
  const lengths: number[] = [];
  function Own() {
    const list = usePaginatedQuery(api.rows.ownPage, {}, { initialNumItems: 4 });
    const view = useAuth();
    useEffect(() => {
      shown = list;
      auth = view;
      if (list.results.length !== lengths.at(-1)) lengths.push(list.results.length);
    });
    return null;
  }
  const list = () => shown as PaginatedQuery<Row> | null;
  const other = new SynclineHttpClient(location.origin);
  await other.mutation(api.rows.fill, { list: "nobody", ranks: Array.from({ length: 12 }, (_, i) => i) });
  const { place, end } = mount(
    <Boundary>
      <Own />
    </Boundary>,
  );
  await until(() => list()?.status === "CanLoadMore");
  list()?.loadMore();
  await until(() => list()?.results.length === 8);
  const view = () => auth as ReturnType<typeof useAuth> | null;
  await view()?.auth.signUp({ email: "pages@example.com", password: "correct horse" });
  await until(() => list()?.status === "Exhausted");
  await other.mutation(api.rows.fill, { list: view()?.userId ?? "", ranks: [1, 2] });
  await until(() => list()?.results.length === 2);
  await view()?.auth.signOut();
  await until(() => list()?.results.length === 4);
  const text = place.textContent;
  await end();
  return { text, lengths };
}
