/** How much memory there is for this program and those it starts. */
import { totalmem } from "node:os";
import process from "node:process";

/** What is planned with where the system does not say how much it has. */
const UNKNOWN_BYTES = 1024 ** 3;

/** Memory of the machine, or of the control group the process runs in when that is less. */
export function machineMemoryBytes(): number {
  const known = [() => process.constrainedMemory(), () => totalmem()].map((ask) => {
    try {
      return ask();
    } catch {
      return 0;
    }
  }).filter((bytes) => bytes > 0);
  return known.length === 0 ? UNKNOWN_BYTES : Math.min(...known);
}
