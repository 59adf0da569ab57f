/** The resource usage of a run in wire form. */
import type { Usage } from "../../../engine/mod.ts";
import type { WireUse } from "../../wire/messages.ts";

export function useOf({ documentsRead, indexRowsRead, documentsWritten, indexRowsWritten }: Usage): WireUse {
  return [documentsRead, indexRowsRead, documentsWritten, indexRowsWritten];
}
