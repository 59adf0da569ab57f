/** Diagram of all tables with fields, indexes and references. */
import { useMemo } from "react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { propertiesOf, requiredOf, tableOf, typeText } from "../../server/json_schema.ts";
import { href } from "../../shell/route.ts";
import { Badge } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Card, Empty } from "../../ui/view.tsx";

/** Fields and indexes of a table. */
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
    ...table.aggregates.map(({ name, by, sum }) => ({
      name,
      kind: "aggregate",
      of: [...by, ...sum.map((field) => `sum of ${field}`)].join(", "),
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
                  <td className="mono wrap">
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

/** Layout of the schema map: columns of tables, with referenced tables to the right of referencing ones. */
const WIDTH_PX = 232;
const HEAD_PX = 34;
const FIELD_PX = 22;
const PAD_PX = 9;
const GAP_X_PX = 72;
const GAP_Y_PX = 24;
/** Target height of the columns of unrelated tables. */
const COLUMN_PX = 900;

interface Box {
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

export interface Reference {
  readonly from: string;
  readonly to: string;
}

function boxesOf(
  tables: readonly { readonly name: string; readonly height: number }[],
  references: readonly Reference[],
): ReadonlyMap<string, Box> {
  const linked = new Set(references.flatMap(({ from, to }) => from === to ? [] : [from, to]));
  const rank = ranksOf([...linked], references);
  const boxes = new Map<string, Box>();
  const columns = Math.max(-1, ...rank.values()) + 1;
  const filled: number[] = Array.from({ length: columns }, () => 0);
  const place = (name: string, height: number, column: number) => {
    const y = filled[column] ?? 0;
    boxes.set(name, { x: column * (WIDTH_PX + GAP_X_PX), y, height });
    filled[column] = y + height + GAP_Y_PX;
  };
  for (const { name, height } of tables) {
    const column = rank.get(name);
    if (column !== undefined) place(name, height, column);
  }
  const tallest = Math.max(COLUMN_PX, ...filled);
  for (const { name, height } of tables) {
    if (rank.has(name)) continue;
    const free = filled.findIndex((used) => used === 0 || used + height <= tallest);
    place(name, height, free === -1 ? filled.length : free);
  }
  return boxes;
}

/** Length of the longest reference path to each table. Cycles are cut. */
function ranksOf(names: readonly string[], references: readonly Reference[]): Map<string, number> {
  const rank = new Map<string, number>();
  const visit = (name: string, way: ReadonlySet<string>): number => {
    const known = rank.get(name);
    if (known !== undefined) return known;
    const before = references.filter(({ from, to }) => to === name && from !== name && !way.has(from));
    const own = Math.max(-1, ...before.map(({ from }) => visit(from, new Set([...way, name])))) + 1;
    rank.set(name, own);
    return own;
  };
  for (const name of names) visit(name, new Set());
  return rank;
}

/** Maximum number of fields listed per table. */
const FIELDS_MAX = 24;

export function SchemaMap({ tables }: { readonly tables: readonly TableOverview[] }) {
  const { boxes, links, width, height } = useMemo(() => laidOut(tables), [tables]);
  return (
    <div className="schema-map" tabIndex={0} role="group" aria-label="Tables and their relations">
      <div className="schema-plane" style={{ width, height }}>
        <svg width={width} height={height} aria-hidden="true">
          {links.map(({ from, to, path }) => <path key={`${from} ${to} ${path}`} d={path} />)}
        </svg>
        {tables.map((table) => {
          const box = boxes.get(table.name);
          return box === undefined ? null : <TableBox key={table.name} table={table} box={box} />;
        })}
      </div>
    </div>
  );
}

function TableBox({ table, box }: { readonly table: TableOverview; readonly box: Box }) {
  const required = new Set(requiredOf(table.schema));
  const fields = Object.entries(propertiesOf(table.schema));
  return (
    <section
      className="schema-table"
      aria-label={table.name}
      style={{ left: box.x, top: box.y, width: WIDTH_PX, height: box.height }}
    >
      <h2>
        <a href={href(["data", table.name])}>{table.name}</a>
      </h2>
      <ul>
        {fields.slice(0, FIELDS_MAX).map(([name, schema]) => {
          const target = tableOf(schema);
          return (
            <li key={name} title={typeText(schema)}>
              <span>{name}{required.has(name) ? "" : "?"}</span>
              <span className="quiet">{target === null ? typeText(schema) : `→ ${target}`}</span>
            </li>
          );
        })}
        {fields.length > FIELDS_MAX && <li className="quiet">{fields.length - FIELDS_MAX} more fields</li>}
        {indexesOf(table).map(({ name, of }) => (
          <li key={name} className="index" title={`index ${name}`}>
            <span className="quiet">{name}</span>
            <span className="quiet">{of}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function indexesOf(
  { indexes, searchIndexes, vectorIndexes, aggregates }: TableOverview,
): { readonly name: string; readonly of: string }[] {
  return [
    ...indexes.map(({ name, fields }) => ({ name, of: fields.join(", ") })),
    ...searchIndexes.map(({ name, searchField }) => ({ name, of: `text of ${searchField}` })),
    ...vectorIndexes.map(({ name, vectorField }) => ({ name, of: `vectors of ${vectorField}` })),
    ...aggregates.map(({ name, by }) => ({ name, of: `totals by ${by.join(", ")}` })),
  ];
}

function laidOut(tables: readonly TableOverview[]) {
  const names = new Set(tables.map(({ name }) => name));
  const references = tables.flatMap((table) =>
    Object.entries(propertiesOf(table.schema)).slice(0, FIELDS_MAX).flatMap(([, schema], row) => {
      const target = tableOf(schema);
      return target === null || !names.has(target) ? [] : [{ from: table.name, row, to: target }];
    })
  );
  const boxes = boxesOf(
    tables.map((table) => {
      const fields = Object.keys(propertiesOf(table.schema)).length;
      const rows = Math.min(fields, FIELDS_MAX) + (fields > FIELDS_MAX ? 1 : 0) + indexesOf(table).length;
      return { name: table.name, height: HEAD_PX + rows * FIELD_PX + PAD_PX };
    }),
    references,
  );
  const links = references.flatMap(({ from, row, to }) => {
    const [a, b] = [boxes.get(from), boxes.get(to)];
    if (a === undefined || b === undefined) return [];
    const y = a.y + HEAD_PX + (row + 0.5) * FIELD_PX;
    const end = b.y + HEAD_PX / 2;
    // Lines leave on the side facing the other table; a self-reference loops on the right.
    const right = b.x > a.x || from === to;
    const x = right ? a.x + WIDTH_PX : a.x;
    const endX = from === to ? b.x + WIDTH_PX : right ? b.x : b.x + WIDTH_PX;
    const bend = right ? 40 : -40;
    const endBend = from === to ? 40 : -bend;
    return [{ from, to, path: `M${x} ${y}C${x + bend} ${y} ${endX + endBend} ${end} ${endX} ${end}` }];
  });
  const all = [...boxes.values()];
  return {
    boxes,
    links,
    width: Math.max(0, ...all.map(({ x }) => x + WIDTH_PX)) + 48,
    height: Math.max(0, ...all.map(({ y, height }) => y + height)) + 8,
  };
}
