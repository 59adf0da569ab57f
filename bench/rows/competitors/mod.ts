/**
 * Syncline beside PocketBase, both as their users start them: resources at rest, calls over HTTP, deliveries and sign-ins.
 * Both have the same documents, the same number of clients and the same load process.
 */
import type { BenchContext } from "../../context.ts";
import type { Row } from "../../table.ts";
import { createRows, readRows, signInRows } from "./calls.ts";
import { deliveryRows } from "./deliveries.ts";
import { installPocketBase } from "./pocketbase.ts";
import { restRows } from "./rest.ts";

/** No rows where PocketBase cannot be installed. */
export async function competitorRows(context: BenchContext): Promise<Row[]> {
  const program = await installPocketBase();
  if (program === null) return [];
  return [
    ...await restRows(context, program),
    ...await createRows(context, { program, synchronous: "full" }),
    ...await createRows(context, { program, synchronous: "normal" }),
    ...await readRows(context, program),
    ...await deliveryRows(context, program),
    ...await signInRows(context, program),
  ];
}
