/** A grid cell, and links to referenced documents. Values of any type are shown as text. */
import { href } from "../../shell/route.ts";
import { Time } from "../../ui/format.tsx";
import { type Schema, tableOf } from "../../server/json_schema.ts";
import type { Labels } from "./labels.ts";

/** Longer values are truncated; the document shows them in full. */
const CHARS_MAX = 120;

/** Returns the address of a document's view. Users and files have views of their own. */
export function hrefOfDocument(table: string, id: string): string {
  if (table === "_storage") return href(["files", id]);
  if (table === "_users") return href(["users", id]);
  return href(["data", table, id]);
}

/** A link to a document, by its label. A click opens it above the current view; a new tab shows it in its own table. */
export function Reference({ table, id, labels, onOpen }: {
  readonly table: string;
  readonly id: string;
  readonly labels: Labels;
  readonly onOpen: (id: string) => void;
}) {
  const label = labels.get(id);
  const isMissing = labels.has(id) && label === undefined && table !== "_storage";
  return (
    <a
      className={label ? "reference" : "mono"}
      href={hrefOfDocument(table, id)}
      title={isMissing ? `${id} does not exist` : id}
      data-missing={isMissing}
      onClick={(event) => {
        event.stopPropagation();
        if (table.startsWith("_") || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        onOpen(id);
      }}
    >
      {label ?? id}
    </a>
  );
}

export function Cell({ value, name, schema, labels, onOpen }: {
  readonly value: unknown;
  readonly name: string;
  readonly schema: Schema | undefined;
  readonly labels: Labels;
  readonly onOpen: (id: string) => void;
}) {
  if (value === undefined) return <span className="missing">–</span>;
  if (name === "_creationTime" && typeof value === "number") return <Time at={value} />;
  if (name === "_id") return <span className="mono">{String(value)}</span>;
  const table = tableOf(schema);
  if (table !== null && typeof value === "string") {
    return <Reference table={table} id={value} labels={labels} onOpen={onOpen} />;
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return <>{text.length > CHARS_MAX ? `${text.slice(0, CHARS_MAX)}…` : text}</>;
}
