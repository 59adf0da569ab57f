/** Backs `ctx.presence` of actions. */
import { z } from "zod";
import { type MainAction, mainAction } from "../functions/main_actions.ts";
import type { RoomHub } from "./room_hub.ts";

/** By function path. */
export function presenceActions(hub: Pick<RoomHub, "list">): ReadonlyMap<string, MainAction> {
  const list = mainAction(
    z.strictObject({ room: z.string() }),
    ({ room }) => Promise.resolve(hub.list(room)),
  );
  return new Map([["_ctx/presence:list", list]]);
}
