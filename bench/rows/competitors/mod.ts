/**
 * Syncline beside PocketBase: resources of idle servers, calls over HTTP, deliveries and sign-ins. Both are started as their
 * documentation describes, and have the same documents, number of clients and load process.
 */
import type { BenchContext } from "../../context.ts";
import type { Row } from "../../table.ts";
import { createRows, readRows, signInRows } from "./calls.ts";
import { deliveryRows } from "./deliveries.ts";
import { installPocketBase } from "./pocketbase.ts";
import { resourceRows } from "./resources.ts";

/** Returns no rows if PocketBase cannot be installed. */
export async function competitorRows(context: BenchContext): Promise<Row[]> {
  const program = await installPocketBase();
  if (program === null) return [];
  return [
    ...await resourceRows(context, program),
    ...await createRows(context, { program, synchronous: "full" }),
    ...await createRows(context, { program, synchronous: "normal" }),
    ...await readRows(context, program),
    ...await deliveryRows(context, program),
    ...await signInRows(context, program),
  ];
}
