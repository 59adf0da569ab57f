/** Layout of a view: header, cards, and empty and loading states. */
import { type CSSProperties, type ReactNode, useEffect, useRef, useState } from "react";
import { useConnectionState } from "syncline/react";
import { isFocusLost } from "./focus.ts";

/** Whether a view was shown since the page was loaded. */
let hasShownView = false;

/** A view. If the element with the focus is gone, such as an entry of the command palette, the view gets the focus. */
export function View(
  { title, text, actions, children }: {
    readonly title: string;
    readonly text?: ReactNode;
    readonly actions?: ReactNode;
    readonly children: ReactNode;
  },
) {
  const main = useRef<HTMLElement>(null);
  // A page that loads keeps the focus at its start, so that the link to the content comes first.
  useEffect(() => {
    if (hasShownView && isFocusLost()) main.current?.focus({ preventScroll: true });
    hasShownView = true;
  }, []);
  return (
    <main className="view" id="view" tabIndex={-1} ref={main}>
      <header className="view-head">
        <div className="grow">
          <h1>{title}</h1>
          {text && <p className="quiet">{text}</p>}
        </div>
        {actions && <div className="row">{actions}</div>}
      </header>
      <div className="view-body">{children}</div>
    </main>
  );
}

export function Card(
  { title, actions, children, flush = false }: {
    readonly title?: ReactNode;
    readonly actions?: ReactNode;
    readonly children: ReactNode;
    /** Whether the content extends to the edges of the card, as tables do. */
    readonly flush?: boolean;
  },
) {
  return (
    <section className="card">
      {title && (
        <div className="card-head">
          <h2 className="grow">{title}</h2>
          {actions && <div className="row">{actions}</div>}
        </div>
      )}
      {flush
        // Scroll containers must be focusable for keyboard users.
        ? <div className="table-scroll" tabIndex={0}>{children}</div>
        : <div className="card-body">{children}</div>}
    </section>
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

export const NO_ANSWER = "The server does not answer. Retrying…";

/** Time after which a wait is explained. */
const SLOW_MS = 4_000;

/** Lines in place of the content, and after a while the reason. */
export function Loading() {
  const { isConnected } = useConnectionState();
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), SLOW_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="loading" role="status">
      <span className="sr-only">Loading…</span>
      {slow
        ? <span>{isConnected ? "No answer from the server yet. Waiting…" : NO_ANSWER}</span>
        : <span className="skeleton" aria-hidden="true" />}
    </div>
  );
}

/** A column, given by its title. Number columns are right-aligned and may be sortable. */
export type Column = string | {
  readonly number: string;
  readonly sort?: { readonly by: boolean; readonly onSort: () => void };
};

export interface TableProps {
  readonly head: readonly Column[];
  /** Whether the last column contains actions. */
  readonly actions?: boolean;
  /** Whether phones show each row as a card. Default: tables that are too wide for them, or have actions. */
  readonly cards?: boolean;
  readonly className?: string;
  readonly children: ReactNode;
}

/** Columns that fit on a phone. */
const PHONE_COLUMNS = 4;

/** A table. As cards, each cell has the title of its column, which the styles take from a property of the table. */
export function Table(
  { head, actions = false, cards = actions || head.length > PHONE_COLUMNS, className = "", children }:
    TableProps,
) {
  const titles = head.map((column, index) => [
    `--column-${index + 1}`,
    JSON.stringify(typeof column === "string" ? column : column.number),
  ]);
  return (
    <table
      className={`table ${className}`}
      data-cards={cards || undefined}
      data-actions={actions || undefined}
      style={Object.fromEntries(titles) as CSSProperties}
    >
      <thead>
        <tr>
          {head.map((column) =>
            typeof column === "string"
              ? <th key={column} scope="col">{column}</th>
              : <NumberHead key={column.number} {...column} />
          )}
          {actions && (
            <th scope="col">
              <span className="sr-only">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

function NumberHead({ number, sort }: Exclude<Column, string>) {
  if (sort === undefined) return <th scope="col" className="number">{number}</th>;
  return (
    <th scope="col" className="number" aria-sort={sort.by ? "descending" : "none"}>
      <button type="button" className="sort" onClick={sort.onSort}>{number}</button>
    </th>
  );
}

export interface TableCardProps<Row> extends Omit<TableProps, "children"> {
  readonly title?: ReactNode;
  /** Content beside the title. */
  readonly titleActions?: ReactNode;
  /** `undefined` while loading. */
  readonly rows: readonly Row[] | undefined;
  readonly row: (row: Row) => ReactNode;
  /** Shown when there are no rows. */
  readonly empty: { readonly title: string; readonly text?: ReactNode };
}

/** A table on its own card, with a loading and an empty state. */
export function TableCard<Row>({ title, titleActions, rows, row, empty, ...table }: TableCardProps<Row>) {
  return (
    <Card flush title={title} actions={titleActions}>
      {rows === undefined && <Loading />}
      {rows?.length === 0 && <Empty title={empty.title}>{empty.text && <p>{empty.text}</p>}</Empty>}
      {rows !== undefined && rows.length > 0 && <Table {...table}>{rows.map(row)}</Table>}
    </Card>
  );
}
