/** Data view: list of tables, grid of the selected table, and details of a document. */
import { lazy, Suspense, useMemo } from "react";
import { useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { href, useRoute } from "../../shell/route.ts";
import { Badge } from "../../ui/controls.tsx";
import { scrollToShown } from "../../ui/focus.ts";
import { count } from "../../ui/format.tsx";
import { Empty, Loading, View } from "../../ui/view.tsx";
import { SchemaMap } from "./schema_map.tsx";
import { TablePage, type TablePageProps } from "./table_page.tsx";

const QueryConsole = lazy(async () => ({ default: (await import("./query_console.tsx")).QueryConsole }));

export function Data() {
  const { path: [, chosen], search } = useRoute();
  const tables = useQuery(api.data.tables);
  const path = chosen === undefined ? [] : [chosen];
  const shown = search.get("show");
  const other = (show: string) => href(["data", ...path], shown === show ? {} : { show });
  const table = tables?.find(({ name }) => name === (chosen ?? tables[0]?.name));
  return (
    <View
      title="Data"
      text="Tables and documents, updated live."
      actions={
        <>
          <a className="button" href={other("console")}>
            {shown === "console" ? "Documents" : "Query console"}
          </a>
          <a className="button" href={other("schema")}>{shown === "schema" ? "Documents" : "Schema map"}</a>
        </>
      }
    >
      {tables === undefined ? <Loading /> : tables.length === 0
        ? (
          <Empty title="No tables">
            <p>
              Define tables in <code>schema.ts</code> in the functions folder.
            </p>
          </Empty>
        )
        : shown === "schema"
        ? <SchemaMap tables={tables.filter(({ orphaned }) => !orphaned)} />
        : shown === "console"
        ? (
          <Suspense fallback={<Loading />}>
            <QueryConsole table={table?.name ?? ""} />
          </Suspense>
        )
        : (
          <div className="data">
            <nav aria-label="Tables">
              <ul className="nav">
                {tables.map(({ name, count: documents, more, orphaned }) => (
                  <li key={name}>
                    <a
                      href={href(["data", name])}
                      aria-current={name === table?.name ? "page" : undefined}
                      // On a phone, the tables are in a row that scrolls.
                      ref={name === table?.name ? scrollToShown : undefined}
                    >
                      <span className="grow mono">{name}</span>
                      {orphaned && (
                        <span title="Not in the schema of the live version">
                          <Badge tone="warn">orphaned</Badge>
                        </span>
                      )}
                      <span className="quiet">{count(documents)}{more && "+"}</span>
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
            {table === undefined
              ? <Empty title="Table not found" />
              : table.orphaned
              ? <OrphanedTable key={table.name} table={table} tables={tables} />
              : <TablePage key={table.name} table={table} tables={tables} />}
          </div>
        )}
    </View>
  );
}

/** Documents read to find the fields of a table without a schema. */
const SAMPLED = 20;

/** A table that the live version's schema lacks, such as after a rollback. It can be read and exported. */
function OrphanedTable({ table, tables }: TablePageProps) {
  const sample = useQuery(api.data.documents, {
    table: table.name,
    paginationOpts: { cursor: null, numItems: SAMPLED },
  } as never) as { readonly page: readonly Readonly<Record<string, unknown>>[] } | undefined;
  const fields = sample && new Set(sample.page.flatMap((document) => Object.keys(document)));
  const names = JSON.stringify([...fields ?? []].filter((name) => !name.startsWith("_")));
  const schema = useMemo(
    () => ({
      type: "object",
      properties: Object.fromEntries((JSON.parse(names) as string[]).map((name) => [name, {}])),
    }),
    [names],
  );
  if (fields === undefined) return <Loading />;
  return (
    <div className="stack orphaned">
      <p className="banner" role="status">
        The live version does not have this table, so its functions cannot reach these documents. They are
        kept, and can be read and exported. A version with the table makes them available again.
      </p>
      <TablePage table={{ ...table, schema }} tables={tables} />
    </div>
  );
}
