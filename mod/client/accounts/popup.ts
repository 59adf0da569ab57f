/**
 * Signing in by a window of its own. That window ends up on a page of the app, which keeps the tokens where all tabs
 * find them and tells its opener here only what became of it: no token is sent from window to window.
 */
import { AccountError } from "./account_calls.ts";
import { Alarm, type Clock } from "../clock.ts";
import * as clientLimits from "../limits.ts";
import { randomUuid } from "../random_uuid.ts";

/** What became of a sign-in in a window. */
export type PopupOutcome =
  | { readonly type: "signedIn" }
  | { readonly type: "failed"; readonly code: string | null; readonly description: string };

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

/** The name of such a window: it survives the way to the provider and back, and names the channel to the opener. */
const NAME = "syncline-sign-in ";
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
    if (popup === null) throw refusal("popup_blocked", "The browser has not opened the window");
    const outcome = await new Promise<PopupOutcome | null>((resolve) => {
      channel.onmessage = ({ data }) => resolve(data as PopupOutcome);
      const look = () => {
        // What it said last may still be on its way.
        if (popup.closed) watch.set(clientLimits.popupLastWordMs, () => resolve(null));
        else watch.set(clientLimits.popupLookMs, look);
      };
      look();
    });
    if (outcome === null) {
      throw refusal("popup_closed", "The window was closed before the sign-in was finished");
    }
    if (outcome.type === "failed") throw refusal(outcome.code, outcome.description);
  } finally {
    watch.clear();
    channel.close();
    if (popup !== null && !popup.closed) popup.close();
  }
}

/** In such a window: tells the opener, and closes it. Returns whether this is one. */
export function endPopup(outcome: PopupOutcome): boolean {
  const platform = globalThis as unknown as Platform;
  const { name, BroadcastChannel } = platform;
  if (name === undefined || !name.startsWith(NAME) || BroadcastChannel === undefined) return false;
  const channel = new BroadcastChannel(name);
  channel.postMessage(outcome);
  channel.close();
  platform.close?.();
  return true;
}

function refusal(code: string | null, message: string): AccountError {
  return new AccountError(message, { code, status: 0, retryAfterMs: null });
}
