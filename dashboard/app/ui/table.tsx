/** A table: its head, a column for what can be done with each row, and the rows. */
import type { ReactNode } from "react";
import { Card, Empty, Loading } from "./view.tsx";

/** A column by its title. Numbers stand at the right; what can be sorted by is pressed for that. */
export type Column = string | {
  readonly number: string;
  readonly sort?: { readonly by: boolean; readonly onSort: () => void };
};

export interface TableProps {
  readonly head: readonly Column[];
  /** Whether the last column holds what can be done. */
  readonly actions?: boolean;
  readonly className?: string;
  /** The rows. */
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
  /** What stands beside the title. */
  readonly tools?: ReactNode;
  /** `undefined` while they are on their way. */
  readonly rows: readonly Row[] | undefined;
  readonly row: (row: Row) => ReactNode;
  /** What stands there when there are none. */
  readonly none: { readonly title: string; readonly text?: ReactNode };
}

/** A table on a card of its own, with what stands there before it is known and when it has no rows. */
export function TableCard<Row>({ title, tools, rows, row, none, ...table }: TableCardProps<Row>) {
  return (
    <Card flush title={title} actions={tools}>
      {rows === undefined && <Loading />}
      {rows?.length === 0 && <Empty title={none.title}>{none.text && <p>{none.text}</p>}</Empty>}
      {rows !== undefined && rows.length > 0 && <Table {...table}>{rows.map(row)}</Table>}
    </Card>
  );
}
