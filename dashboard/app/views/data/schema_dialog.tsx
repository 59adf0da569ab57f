/** Fields and indexes of a table. */
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { href } from "../../shell/route.ts";
import { Badge } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Card, Empty } from "../../ui/view.tsx";
import { propertiesOf, requiredOf, tableOf, typeText } from "../../server/json_schema.ts";

export function SchemaDialog(
  { table, onClose }: { readonly table: TableOverview; readonly onClose: () => void },
) {
  const required = new Set(requiredOf(table.schema));
  const indexes = [
    ...table.indexes.map(({ name, fields }) => ({ name, kind: "fields", of: fields.join(", ") })),
    ...table.searchIndexes.map(({ name, searchField, filterFields }) => ({
      name,
      kind: "search",
      of: [searchField, ...filterFields].join(", "),
    })),
    ...table.vectorIndexes.map(({ name, vectorField, dimensions }) => ({
      name,
      kind: "vectors",
      of: `${vectorField}, ${dimensions} dimensions`,
    })),
  ];
  return (
    <Dialog open form="large" title={`Schema of ${table.name}`} onClose={onClose}>
      <Card flush title="Fields">
        <table className="table">
          <tbody>
            {Object.entries(propertiesOf(table.schema)).map(([name, schema]) => {
              const target = tableOf(schema);
              return (
                <tr key={name}>
                  <td className="mono">
                    {name} {!required.has(name) && <Badge>optional</Badge>}
                  </td>
                  <td className="mono">
                    {target === null
                      ? typeText(schema)
                      : <a href={href(["data", target])}>{typeText(schema)}</a>}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Card>
      <Card flush title="Indexes">
        {indexes.length === 0 && <Empty title="Only the index by creation time" />}
        <table className="table">
          <tbody>
            {indexes.map(({ name, kind, of }) => (
              <tr key={name}>
                <td className="mono">{name}</td>
                <td>
                  <Badge>{kind}</Badge>
                </td>
                <td className="mono">{of}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Card>
    </Dialog>
  );
}
