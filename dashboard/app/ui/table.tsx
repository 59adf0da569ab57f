/** Tables and table cards. */
import type { ReactNode } from "react";
import { Card, Empty, Loading } from "./view.tsx";

/** A column, given by its title. Number columns are right-aligned and may be sortable. */
export type Column = string | {
  readonly number: string;
  readonly sort?: { readonly by: boolean; readonly onSort: () => void };
};

export interface TableProps {
  readonly head: readonly Column[];
  /** Whether the last column contains actions. */
  readonly actions?: boolean;
  readonly className?: string;
  readonly children: ReactNode;
}

export function Table({ head, actions = false, className = "", children }: TableProps) {
  return (
    <table className={`table ${className}`}>
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
