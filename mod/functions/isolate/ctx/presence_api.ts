/** `ctx.presence` of actions: the main process knows the rooms. */

export class PresenceApi {
  readonly #act: (name: string, args: Record<string, unknown>) => Promise<unknown>;

  constructor(act: (name: string, args: Record<string, unknown>) => Promise<unknown>) {
    this.#act = act;
  }

  async list(room: string): Promise<unknown> {
    if (typeof room !== "string") throw new TypeError(`list() needs the name of a room, not ${typeof room}`);
    return await this.#act("_ctx/presence:list", { room });
  }
}
