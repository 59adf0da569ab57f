/** The process of `MachineControl`: writes a small file now and then, and says how long each took from when it was due. */
import { join } from "node:path";
import { syncFolder, writeAll } from "../../../mod/kit/durable_files.ts";

const EVERY_MS = 50;
const FILE_BYTES = 16 * 1024;
const clock = () => performance.timeOrigin + performance.now();

const [folder = ""] = Deno.args;
const bytes = crypto.getRandomValues(new Uint8Array(FILE_BYTES));
for (let number = 0;; number = (number + 1) % 10) {
  const dueAt = clock() + EVERY_MS;
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  const path = join(folder, String(number));
  {
    using file = await Deno.open(`${path}.partial`, { write: true, create: true, truncate: true });
    await writeAll(file, bytes);
    await file.sync();
  }
  await Deno.rename(`${path}.partial`, path);
  await syncFolder(folder);
  await writeAll(Deno.stdout, new TextEncoder().encode(`turn ${dueAt} ${clock() - dueAt}\n`));
}
