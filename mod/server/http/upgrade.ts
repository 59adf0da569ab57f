/** Upgrades the handshake of `/api/sync` to a WebSocket. */
import { ServiceError } from "../../errors.ts";
import { socketLimits } from "../../limits.ts";

export interface UpgradeOptions {
  /** See `socketLimits.deadPeerMs`. */
  readonly deadPeerMs?: number;
}

/**
 * Upgrades a request. The platform pings a peer that has been silent for half of `deadPeerMs` and drops the connection if it
 * does not answer. This matters after our close frame, which a vanished peer never answers. Live clients never see this
 * ping, because they answer ours every 15 s. Throws `bad_request` if the handshake is not valid.
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
