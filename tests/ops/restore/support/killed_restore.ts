/** Applies a staged restore and kills itself before the nth step. Arguments: data folder, n. */
import { applyStagedRestore } from "../../../../mod/ops/backups/restore/mod.ts";

const [dataDir = "", nth = ""] = Deno.args;
let step = 0;
await applyStagedRestore(dataDir, new Date(), {
  beforeStep: () => {
    if (++step === Number(nth)) Deno.kill(Deno.pid, "SIGKILL");
  },
});
