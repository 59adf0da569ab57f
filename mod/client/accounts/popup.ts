/**
 * Signing in by a window of its own. That window ends up on a page of the app, which keeps the tokens where all tabs
 * find them and tells its opener here only what became of it: no token is sent from window to window.
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
 * The name of such a window: it survives the way to the provider and back, and names the channel to the opener. It changes
 * with the messages: windows with other versions of the client do not understand one another.
 */
const NAME = "syncline-sign-in-2 ";
const CLOSED: Refusal = ["popup_closed", "The window was closed before the sign-in was finished"];
const FEATURES = "popup,width=500,height=700";

/** Opens the window. Rejects with `AccountError`: `popup_blocked`, `popup_closed`, or what the server said. */
export async function signInByPopup(address: string, clock: Clock): Promise<void> {
  const { open, BroadcastChannel } = globalThis as unknown as Platform;
  if (open === undefined || BroadcastChannel === undefined) {
    throw new TypeError("Cannot open a window outside a page");
  }
  const name = `${NAME}${randomUuid()}`;
  const channel = new BroadcastChannel(name);
  const watch = new Alarm(clock);
  // Called as a method of nothing: browsers insist on their own global object.
  const popup = open.call(globalThis, address, name, FEATURES);
  try {
    if (popup === null) throw accountError(["popup_blocked", "The browser has not opened the window"]);
    const refusal = await new Promise<Refusal | null>((resolve) => {
      channel.onmessage = ({ data }) => resolve(data as Refusal | null);
      const look = () => {
        // What it said last may still be on its way.
        if (popup.closed) watch.set(clientLimits.popupLastWordMs, () => resolve(CLOSED));
        else watch.set(clientLimits.popupLookMs, look);
      };
      look();
    });
    if (refusal !== null) throw accountError(refusal);
  } finally {
    watch.clear();
    channel.close();
    if (popup !== null && !popup.closed) popup.close();
  }
}

/** In such a window: tells the opener that the sign-in was refused, or with `null` that it was not, and closes it. */
export function endPopup(refusal: Refusal | null): void {
  const platform = globalThis as unknown as Platform;
  const { name, BroadcastChannel } = platform;
  if (name === undefined || !name.startsWith(NAME) || BroadcastChannel === undefined) return;
  const channel = new BroadcastChannel(name);
  channel.postMessage(refusal);
  channel.close();
  platform.close?.();
}
