/** Passkeys of the signed-in administrator, and whether this page can use passkeys. */
import { useEffect, useMemo, useState } from "react";
import { addPasskey, provePasskey, removePasskey, supportsPasskeys } from "syncline/accounts";
import type { SynclineClient } from "syncline/client";
import { useSyncline } from "syncline/react";

/** Returns the functions that change or prove the administrator's passkeys. They reject with errors that users understand. */
export function usePasskeyActions() {
  const client = useSyncline();
  return useMemo(() => {
    // The functions of administrators, which are audited, instead of those of users.
    const own = {
      action: (path: string, args: object) =>
        client.action(path.replace("_auth:", "_admin/administrators:"), { ...args }),
    } as unknown as SynclineClient;
    return {
      addPasskey: (options: { readonly name: string; readonly password?: string }) =>
        withReadableErrors(() => addPasskey(own, options)),
      provePasskey: () => withReadableErrors(() => provePasskey(own)),
      removePasskey: (passkeyId: string) => removePasskey(own, passkeyId),
    };
  }, [client]);
}

/** Whether the browser and the page's address support passkeys; `false` until that is known. */
export function usePasskeySupport(): boolean {
  const [supported, setSupported] = useState(false);
  useEffect(() => void supportsPasskeys().then(setSupported), []);
  return supported;
}

/** Replaces the browser's errors by sentences. */
export async function withReadableErrors<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    const text = error instanceof DOMException ? TEXTS[error.name] : undefined;
    throw text === undefined ? error : new Error(text, { cause: error });
  }
}

const TEXTS: Readonly<Record<string, string>> = {
  AbortError: "Canceled: no passkey was used.",
  InvalidStateError: "This device has a passkey of your account already.",
  NotAllowedError: "Canceled: no passkey was used.",
  SecurityError: "Passkeys work at the domain of --public-url only. Without it, open http://localhost.",
};
