/** Memory available to this program and its child processes. */
import { totalmem } from "node:os";
import process from "node:process";

/** Assumed if the system does not report its memory. */
const UNKNOWN_BYTES = 1024 ** 3;

/** Returns the memory of the machine, or of the process's control group if that is less. */
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
