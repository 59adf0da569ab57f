/** The fair-queue key of a call and the key to which timeouts are attributed. */
import type { Caller } from "../functions/host_port.ts";
import type { Identity } from "../functions/identity.ts";
import { addressKey } from "../kit/client_address.ts";

/** A signed-in user is one caller across all sockets. Anyone else is `guest`. */
export function callerOf({ principal }: Identity, guest: Caller): Caller {
  return principal === null ? guest : { turn: principal, blame: principal };
}

/** An anonymous caller. It queues by socket if it has one, otherwise by address. */
export function guestCaller(address: string, socket: number | null = null): Caller {
  const blame = `address ${addressKey(address)}`;
  return { turn: socket === null ? blame : `socket ${socket}`, blame };
}

/** An anonymous caller that queues by session, so that mutations resent on a new socket stay behind those of the old one. */
export function guestInSession({ blame }: Caller, sessionId: string): Caller {
  return { turn: `session ${sessionId}`, blame };
}
