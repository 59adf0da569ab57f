/** The values that the binding of a framework returns, in one form for all frameworks. */
import type { OptimisticStore, SynclineClient } from "syncline/client";
import { api } from "../../react/page/api.ts";

/** Arguments of the queries of a scenario. */
export const list = "a";
/** The value of the query for its first arguments until there is a result. */
export const initial = "early";

/** A mounted component, with functions that change its inputs. */
export interface Component {
  /** Sets the argument of the query; `null` skips it. */
  setRank(rank: number | null): void;
  row(): {
    readonly data: string | null | undefined;
    readonly error: Error | null;
    readonly isLoading: boolean;
  };
  pages(): { readonly ranks: readonly number[]; readonly status: string; readonly isLoading: boolean };
  loadMore(): void;
  put(args: Row): Promise<unknown>;
  /** The same mutation with an optimistic update of the query. */
  putNow(args: Row): Promise<unknown>;
  shout(text: string): Promise<string>;
  isConnected(): boolean;
  authStatus(): string;
  /** Stops and restarts reading the query. Only of Svelte, which subscribes while a value is read. */
  readonly rowReader?: { stop(): void; start(): void };
  unmount(): void;
}

interface Row {
  readonly list: string;
  readonly rank: number;
  readonly text: string;
}

/** Mounts a component of a framework. */
export type Mount = (client: SynclineClient, root: HTMLElement) => Component;

/** The optimistic update of `putNow`. */
export function putLocally(
  store: OptimisticStore,
  { list, rank, text }: Row,
): void {
  store.setQuery(api.rows.text, { list, rank }, text);
}
