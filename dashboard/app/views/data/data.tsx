/** Data view: list of tables, grid of the selected table, and details of a document. */
import { useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { href, useRoute } from "../../shell/route.ts";
import { count } from "../../ui/format.tsx";
import { Empty, Loading, View } from "../../ui/view.tsx";
import { SchemaMap } from "./schema_map.tsx";
import { TablePage } from "./table_page.tsx";

export function Data() {
  const { path: [, chosen], search } = useRoute();
  const tables = useQuery(api.data.tables);
  const path = chosen === undefined ? [] : [chosen];
  const mapped = search.get("show") === "schema";
  const table = tables?.find(({ name }) => name === (chosen ?? tables[0]?.name));
  return (
    <View
      title="Data"
      text="Tables and documents, updated live."
      actions={
        <a
          className="button"
          href={mapped ? href(["data", ...path]) : href(["data", ...path], { show: "schema" })}
        >
          {mapped ? "Documents" : "Schema map"}
        </a>
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
        : mapped
        ? <SchemaMap tables={tables} />
        : (
          <div className="data">
            <nav aria-label="Tables">
              <ul className="nav">
                {tables.map(({ name, count: documents, more }) => (
                  <li key={name}>
                    <a href={href(["data", name])} aria-current={name === table?.name ? "page" : undefined}>
                      <span className="grow mono">{name}</span>
                      <span className="quiet">{count(documents)}{more && "+"}</span>
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
            {table === undefined
              ? <Empty title="Table not found" />
              : <TablePage key={table.name} table={table} />}
          </div>
        )}
    </View>
  );
}
