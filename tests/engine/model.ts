/** A simple model of the engine: documents in a Map, with linear search and sorting. Used by the model test. */
import { compareValues } from "../../mod/engine/mod.ts";
import type { Doc, IndexBounds, Value } from "../../mod/engine/mod.ts";

type Documents = ReadonlyMap<string, { readonly table: string; readonly doc: Doc }>;

export class Model {
  documents: Documents = new Map();

  set(table: string, doc: Doc): void {
    this.documents = new Map([...this.documents, [doc._id, { table, doc }]]);
  }

  delete(id: string): void {
    this.documents = new Map([...this.documents].filter(([other]) => other !== id));
  }

  ids(table: string): string[] {
    return [...this.documents].filter(([, entry]) => entry.table === table).map(([id]) => id);
  }

  /** Returns documents within bounds on fields, in the order of the index. */
  range(table: string, fields: readonly string[], bounds: IndexBounds): Doc[] {
    const all = [...fields, "_creationTime"];
    return [...this.documents.values()]
      .filter((entry) => entry.table === table)
      .map(({ doc }) => doc)
      .filter((doc) => within(all.map((field) => doc[field]), bounds))
      .sort((a, b) => {
        for (const field of [...all, "_id"]) {
          const order = compareValues(a[field], b[field]);
          if (order !== 0) return order;
        }
        return 0;
      });
  }
}

function within(values: readonly (Value | undefined)[], { eq, lower, upper }: IndexBounds): boolean {
  if (!eq.every((value, index) => compareValues(values[index], value) === 0)) return false;
  const next = values[eq.length];
  if (lower !== undefined) {
    const order = compareValues(next, lower.value);
    if (order < 0 || (order === 0 && !lower.inclusive)) return false;
  }
  if (upper !== undefined) {
    const order = compareValues(next, upper.value);
    if (order > 0 || (order === 0 && !upper.inclusive)) return false;
  }
  return true;
}
