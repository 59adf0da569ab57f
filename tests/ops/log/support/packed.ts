/** Runs as main hands them over. */
import { type RunPack, RunPacker } from "../../../../mod/ops/log/packs/run_pack.ts";
import type { RunRecord } from "../../../../mod/ops/log/run_record.ts";

export function packed(records: readonly RunRecord[]): RunPack {
  const packer = new RunPacker();
  for (const record of records) packer.add(record);
  return packer.take();
}
