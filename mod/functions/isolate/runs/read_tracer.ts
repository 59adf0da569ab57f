/** Records the reads of a traced query, with advice on indexes. */
import type { Doc, TableDefinition } from "../../../engine/types.ts";
import type { ReadTrace } from "../../read_trace.ts";
import type { IndexSource, SearchSource } from "../ctx/cursor.ts";

/** Distinct reads recorded. */
const READS_MAX = 100;
/** Documents of a read whose checked fields are recorded. */
const WATCHED_MAX = 50;
/** A whole table with this many documents is worth a hint. */
const LARGE_TABLE = 1_000;

/** One read while it runs. */
export class TracedRead {
  readonly table: string;
  readonly definition: TableDefinition | null;
  readonly source: Pick<IndexSource, "index" | "bounds" | "fields"> | SearchSource;
  readonly filtered = new Set<string>();
  calls = 0;
  documents = 0;
  returned = 0;
  #watched = 0;

  constructor(
    table: string,
    { definition, source }: Pick<TracedRead, "definition" | "source">,
  ) {
    this.table = table;
    this.definition = definition;
    this.source = source;
  }

  /** Whether a document passes a filter. Records the fields that the filter reads. */
  passes(doc: Doc, predicate: (doc: Doc) => boolean): boolean {
    if (this.#watched >= WATCHED_MAX) return predicate(doc);
    this.#watched++;
    const watched = new Proxy(doc, {
      get: (target, name) => {
        if (typeof name === "string" && Object.hasOwn(target, name)) this.filtered.add(name);
        return Reflect.get(target, name) as unknown;
      },
    });
    try {
      return predicate(watched);
    } catch {
      // Functions such as structuredClone refuse a proxy.
      return predicate(doc);
    }
  }

  /** Fields with conditions that the index serves. */
  get fields(): readonly string[] {
    if (!("bounds" in this.source)) return this.source.fields.slice(0, 1);
    const { fields, bounds: { eq, lower, upper } } = this.source;
    return fields.slice(0, eq.length + (lower === undefined && upper === undefined ? 0 : 1));
  }
}

export class ReadTracer {
  readonly #reads = new Map<string, TracedRead>();

  /** Returns the record of a read, which is shared by all that have the same conditions. */
  begin(
    table: string,
    { definition, source }: Pick<TracedRead, "definition" | "source">,
  ): TracedRead {
    let read = new TracedRead(table, { definition, source });
    const key = JSON.stringify([table, source.index, read.fields]);
    const known = this.#reads.get(key);
    if (known !== undefined) read = known;
    else if (this.#reads.size < READS_MAX) this.#reads.set(key, read);
    read.calls++;
    return read;
  }

  /** Records a document read by its ID. */
  document(table: string, found: boolean): void {
    const source = { index: "by_id", fields: ["_id"], bounds: { eq: [""] } };
    const read = this.begin(table, { definition: null, source });
    if (!found) return;
    read.documents++;
    read.returned++;
  }

  take(): ReadTrace[] {
    return [...this.#reads.values()].map((read) => ({
      table: read.table,
      index: read.source.index,
      fields: read.fields,
      filtered: [...read.filtered],
      calls: read.calls,
      documents: read.documents,
      returned: read.returned,
      scan: read.fields.length === 0,
      advice: adviceFor(read),
    }));
  }
}

function adviceFor(read: TracedRead): string | null {
  const { table, definition, source, documents, returned, fields, calls } = read;
  if (definition === null || !("bounds" in source)) return null;
  const filtered = [...read.filtered].filter((field) => !field.startsWith("_") && !fields.includes(field));
  if (filtered.length === 0 || documents <= returned) {
    const isLarge = fields.length === 0 && documents >= LARGE_TABLE * calls;
    return isLarge ? `It reads all of ${table}: .take(n) or .paginate() would read a part.` : null;
  }
  const wanted = [...fields.slice(0, source.bounds.eq.length), ...filtered];
  const index = definition.indexes.find(({ fields }) =>
    wanted.every((field) => fields.slice(0, wanted.length).includes(field))
  );
  const waste = `It read ${documents} documents and returned ${returned}.`;
  if (index !== undefined) return `${waste} Use .withIndex("${index.name}") instead of the filter.`;
  const name = `by_${wanted.join("_")}`;
  return `${waste} An index would serve the filter if it compares for equality: ` +
    `.index(${JSON.stringify(name)}, ${JSON.stringify(wanted)}) in ${table}.`;
}
