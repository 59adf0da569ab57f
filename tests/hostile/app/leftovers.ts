/** Calls that affect later calls. */
import { untypedAction, untypedMutation } from "syncline/server";

/** Makes each later creation of a stack trace endless. */
export const stacks = untypedMutation({
  args: {},
  handler: () => {
    Error.prepareStackTrace = () => {
      for (;;);
    };
    return null;
  },
});

export const fails = untypedMutation({
  args: {},
  handler: (): null => {
    throw new Error("with a stack");
  },
});

/** Hashes without await, which use a whole processor. */
function leave(): null {
  for (let n = 0; n < 16; n++) hash().catch(() => {});
  return null;
}

async function hash(): Promise<void> {
  const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
  const algorithm = { name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(8), iterations: 20_000_000 };
  await crypto.subtle.deriveBits(algorithm, key, 256);
}

export const leavingMutation = untypedMutation({ args: {}, handler: leave });
export const leavingAction = untypedAction({ args: {}, handler: leave });
