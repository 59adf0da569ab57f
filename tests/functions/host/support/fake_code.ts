/** Code for starters whose processes load none. */
import { plainCode } from "../../../../mod/functions/packages/app_code.ts";
import type { ProcessStarterOptions } from "../../../../mod/functions/host/process/isolate_process.ts";

export function fakeCode(folder: string): Pick<ProcessStarterOptions, "version" | "versions"> {
  return {
    version: {
      hash: "0".repeat(32),
      folder,
      functionsDir: folder,
      authorFolder: folder,
      code: plainCode,
      staticDir: null,
    },
    versions: { hold: () => Promise.resolve({ [Symbol.dispose]: () => {} }) },
  };
}
