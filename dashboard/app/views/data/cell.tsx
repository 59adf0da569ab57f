/** A grid cell. Values of any type are shown as text. */
import { href } from "../../shell/route.ts";
import { Time } from "../../ui/format.tsx";
import { type Schema, tableOf } from "../../server/json_schema.ts";

/** Longer values are truncated; the document shows them in full. */
const CHARS_MAX = 120;

/** Returns the address of a document's view. Users and files have views of their own. */
export function hrefOfDocument(table: string, id: string): string {
  if (table === "_storage") return href(["files", id]);
  if (table === "_users") return href(["users", id]);
  return href(["data", table, id]);
}

export function Cell({ value, name, schema }: {
  readonly value: unknown;
  readonly name: string;
  readonly schema: Schema | undefined;
}) {
  if (value === undefined) return <span className="missing">–</span>;
  if (name === "_creationTime" && typeof value === "number") return <Time at={value} />;
  if (name === "_id") return <span className="mono">{String(value)}</span>;
  const table = tableOf(schema);
  if (table !== null && typeof value === "string") {
    return (
      <a
        className="mono"
        href={hrefOfDocument(table, value)}
        onClick={(event) => event.stopPropagation()}
      >
        {value}
      </a>
    );
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return <>{text.length > CHARS_MAX ? `${text.slice(0, CHARS_MAX)}…` : text}</>;
}
