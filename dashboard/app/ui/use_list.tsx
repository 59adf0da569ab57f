/** A live list that loads more rows as it is scrolled. */
import { useEffect, useRef } from "react";
import { type ListArgs, type PaginatedName, type PaginatedQuery, usePaginatedQuery } from "syncline/react";
import { Button } from "./button.tsx";

const FIRST = 50;
const MORE = 100;

type LiveList<Row> = PaginatedQuery<Row>;

export function useLiveList<Name extends PaginatedName>(query: Name, args: ListArgs<Name>) {
  return usePaginatedQuery(query, args as never, { initialNumItems: FIRST });
}

/** Loads the next page when scrolled into view or clicked. */
export function ListEnd({ list }: { readonly list: Pick<LiveList<unknown>, "status" | "loadMore"> }) {
  const end = useRef<HTMLDivElement>(null);
  const { status, loadMore } = list;
  useEffect(() => {
    if (status !== "CanLoadMore" || end.current === null) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && loadMore(MORE));
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [status, loadMore]);
  if (status === "Exhausted") return null;
  return (
    <div ref={end} className="empty">
      {status === "CanLoadMore" ? <Button onClick={() => loadMore(MORE)}>Load more</Button> : "Loading…"}
    </div>
  );
}
