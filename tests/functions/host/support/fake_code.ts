/** Code for starters whose processes load nothing. */
import type { ProcessStarterOptions } from "../../../../mod/functions/host/process/process_starter.ts";

export function fakeCode(folder: string): Pick<ProcessStarterOptions, "version" | "versions"> {
  return {
    version: {
      hash: "0".repeat(32),
      folder,
      bundle: `${folder}/bundle.js`,
      functions: "functions",
      authorFolder: folder,
      staticDir: null,
    },
    versions: { hold: () => Promise.resolve({ [Symbol.dispose]: () => {} }) },
  };
}
