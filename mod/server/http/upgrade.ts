/** Turns the handshake of `/api/sync` into a socket. */
import { ServiceError } from "../../errors.ts";
import { socketLimits } from "../../limits.ts";

export interface UpgradeOptions {
  /** See `socketLimits.deadPeerMs`. */
  readonly deadPeerMs?: number;
}

/**
 * Upgrades a request. The platform pings a peer that has said nothing for half of `deadPeerMs` and lets go of the
 * connection when not even that is answered: after a close frame of our own it would wait for the peer's without end,
 * and a peer whose network is gone never sends one. Any message, and the protocol's answer to our Ping each 15 s, is
 * a sign of life, so clients that are there never see this ping. Throws `bad_request` for what is no handshake.
 */
export function upgradeSocket(
  request: Request,
  { deadPeerMs = socketLimits.deadPeerMs }: UpgradeOptions = {},
): Deno.WebSocketUpgrade {
  try {
    return Deno.upgradeWebSocket(request, { idleTimeout: deadPeerMs / 1000 });
  } catch (error) {
    throw new ServiceError("bad_request", "The WebSocket handshake is not valid", { cause: error });
  }
}
