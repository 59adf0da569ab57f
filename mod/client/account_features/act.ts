/** Calls of account actions. */
import type { SynclineClient } from "../client.ts";

/** Calls the action `_auth:<name>`. */
export async function act<Result>(client: SynclineClient, name: string, args: object): Promise<Result> {
  return await client.action(`_auth:${name}`, { ...args }) as Result;
}
