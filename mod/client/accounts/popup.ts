/**
 * Sign-in in a popup window. The window ends on a page of the app, which stores the tokens where all tabs find them and only
 * reports the outcome to its opener: no token is sent between windows.
 */
import { accountError, type Refusal } from "./account_calls.ts";
import { Alarm, type Clock } from "../clock.ts";
import * as clientLimits from "../limits.ts";
import { randomUuid } from "../random_uuid.ts";

interface Channel {
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
}

interface Platform {
  readonly name?: string;
  readonly BroadcastChannel?: new (name: string) => Channel;
  open?(address: string, name: string, features: string): { readonly closed: boolean; close(): void } | null;
  close?(): void;
}

/**
 * Prefix of the window's name, which survives the navigation to the provider and back, and names the channel to the opener.
 * Changes with the message format, so that different client versions do not communicate.
 */
const NAME = "syncline-sign-in-2 ";
const CLOSED: Refusal = ["popup_closed", "The window was closed before the sign-in was finished"];
const FEATURES = "popup,width=500,height=700";

/** Opens the window. Rejects with `AccountError`: `popup_blocked`, `popup_closed`, or the server's error. */
export async function signInByPopup(address: string, clock: Clock): Promise<void> {
  const { open, BroadcastChannel } = globalThis as unknown as Platform;
  if (open === undefined || BroadcastChannel === undefined) {
    throw new TypeError("Cannot open a window outside a page");
  }
  const name = `${NAME}${randomUuid()}`;
  const channel = new BroadcastChannel(name);
  const watch = new Alarm(clock);
  // Called as a plain function: browsers require their own global object.
  const popup = open.call(globalThis, address, name, FEATURES);
  try {
    if (popup === null) throw accountError(["popup_blocked", "The browser blocked the window"]);
    const refusal = await new Promise<Refusal | null>((resolve) => {
      channel.onmessage = ({ data }) => resolve(data as Refusal | null);
      const poll = () => {
        // Its last message may still be in transit.
        if (popup.closed) watch.set(clientLimits.popupResultMs, () => resolve(CLOSED));
        else watch.set(clientLimits.popupPollMs, poll);
      };
      poll();
    });
    if (refusal !== null) throw accountError(refusal);
  } finally {
    watch.clear();
    channel.close();
    if (popup !== null && !popup.closed) popup.close();
  }
}

/** In the popup: reports a refusal, or success with `null`, to the opener and closes the window. */
export function endPopup(refusal: Refusal | null): void {
  const platform = globalThis as unknown as Platform;
  const { name, BroadcastChannel } = platform;
  if (name === undefined || !name.startsWith(NAME) || BroadcastChannel === undefined) return;
  const channel = new BroadcastChannel(name);
  channel.postMessage(refusal);
  channel.close();
  platform.close?.();
}
