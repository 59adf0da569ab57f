/** Whose turn a call takes, and who answers for it. */
import type { Caller } from "../functions/host_port.ts";
import type { Identity } from "../functions/identity.ts";
import { addressKey } from "../kit/client_address.ts";

/** Whoever is signed in is one caller, with all his sockets; else it is what `guest` says. */
export function callerOf({ principal }: Identity, guest: Caller): Caller {
  return principal === null ? guest : { turn: principal, blame: principal };
}

/** A guest: its turn is that of its socket, if it has one, or else of its address. */
export function guestOf(address: string, socket: number | null = null): Caller {
  const blame = `address ${addressKey(address)}`;
  return { turn: socket === null ? blame : `socket ${socket}`, blame };
}

/**
 * A guest whose socket belongs to a session: mutations that the session sends on a new socket keep their order behind those of
 * the old one.
 */
export function guestInSession({ blame }: Caller, sessionId: string): Caller {
  return { turn: `session ${sessionId}`, blame };
}
