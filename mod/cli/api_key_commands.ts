/** The commands `api-key ...`, which talk to a running server on the same machine. */
import { StartError } from "../config/start_error.ts";
import type { CommandSpec } from "./command_line.ts";
import { type CallServer, withRunningServer } from "./running_server.ts";

interface Key {
  readonly keyId: string;
  readonly name: string;
  readonly shown: string;
  readonly userId: string | null;
  readonly functions: readonly string[];
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
}

const NAME = { name: "name", description: "Name of the key" };

export const apiKeyCommands: readonly CommandSpec[] = [
  {
    name: "api-key create",
    description: "Create an API key that may call some functions; it is printed once",
    argument: { name: "name=functions", description: "Name and patterns, such as ci=tasks:list,hooks:*" },
    run: ({ data }, text) =>
      withRunningServer(data, async (call) => {
        const [, name, patterns = ""] = text.match(/^([^=]+)=(.+)$/) ?? [];
        if (name === undefined) {
          throw new StartError("Expected name=functions, such as ci=tasks:list,hooks:*");
        }
        const functions = patterns.split(",").map((pattern) => pattern.trim());
        return (await call("_admin/apiKeys:create", { name, functions }) as { readonly key: string }).key;
      }),
  },
  {
    name: "api-key list",
    description: "List the API keys, newest first",
    run: ({ data }) =>
      withRunningServer(data, async (call) => {
        const found = await keys(call);
        return found.length === 0 ? "There are no API keys." : found.map(line).join("\n");
      }),
  },
  {
    name: "api-key revoke",
    description: "Revoke an API key, by its name or first characters",
    argument: NAME,
    run: ({ data }, name) =>
      withRunningServer(data, async (call) => {
        const [found, ...more] = (await keys(call)).filter((key) => key.name === name || key.shown === name);
        if (found === undefined) throw new StartError(`API key ${name} does not exist.`);
        if (more.length > 0) {
          throw new StartError(`Several API keys are named ${name}: pass the first characters.`);
        }
        await call("_admin/apiKeys:revoke", { keyId: found.keyId });
        return `Revoked API key ${found.name}.`;
      }),
  },
];

async function keys(call: CallServer): Promise<readonly Key[]> {
  return await call("_admin/apiKeys:list", {}) as readonly Key[];
}

function line({ name, shown, userId, functions, createdAt, lastUsedAt, expiresAt }: Key): string {
  const at = (time: number) => new Date(time).toISOString();
  return [
    name,
    shown,
    functions.join(","),
    userId === null ? "service" : `user ${userId}`,
    `created ${at(createdAt)}`,
    lastUsedAt === null ? "never used" : `last used ${at(lastUsedAt)}`,
    ...expiresAt === null ? [] : [`expires ${at(expiresAt)}`],
  ].join("  ");
}
