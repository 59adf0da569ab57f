/** The commands `deploy-key ...` and `env ...`, which talk to a running server on the same machine. */
import { StartError } from "../../config/start_error.ts";
import type { CommandSpec } from "../command_line.ts";
import { type CallServer, withRunningServer } from "../running_server.ts";

interface Key {
  readonly keyId: string;
  readonly name: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
}

const NAME = { name: "name", description: "Name of the key" };

export const deployKeyCommands: readonly CommandSpec[] = [
  {
    name: "deploy-key create",
    description: "Create a key that only permits deploys; it is printed once",
    argument: NAME,
    run: ({ data }, name) =>
      withRunningServer(data, async (call) => {
        const { key } = await call("_admin/deployKeys:create", { name }) as { readonly key: string };
        return key;
      }),
  },
  {
    name: "deploy-key list",
    description: "List the deploy keys, newest first",
    run: ({ data }) => withRunningServer(data, list),
  },
  {
    name: "deploy-key revoke",
    description: "Revoke a deploy key",
    argument: NAME,
    run: ({ data }, name) =>
      withRunningServer(data, async (call) => {
        const found = (await keys(call)).find((key) => key.name === name && key.revokedAt === null);
        if (found === undefined) {
          throw new StartError(`Deploy key ${name} does not exist.`, { code: "deploy" });
        }
        await call("_admin/deployKeys:revoke", { keyId: found.keyId });
        return `Revoked deploy key ${name}.`;
      }),
  },
];

export const envCommands: readonly CommandSpec[] = [
  {
    name: "env list",
    description: "Print the ctx.env variables stored by the server",
    run: ({ data }) =>
      withRunningServer(data, async (call) => {
        const variables = await call("_admin/env:list", {}) as readonly {
          readonly name: string;
          readonly value: string | null;
          readonly overridden: boolean;
        }[];
        if (variables.length === 0) return "The server stores no variables.";
        return variables.map(({ name, value, overridden }) =>
          value === null
            ? `# ${name} was encrypted with another key: set it again`
            : `${name}=${value}${overridden ? "  # overridden by --env-file" : ""}`
        ).join("\n");
      }),
  },
  {
    name: "env set",
    description: "Store a ctx.env variable; actions started afterwards see it",
    argument: { name: "NAME=value", description: "The variable" },
    run: ({ data }, text) =>
      withRunningServer(data, async (call) => {
        const [, name, value = ""] = text.match(/^([^=]+)=([^]*)$/) ?? [];
        if (name === undefined) throw new StartError("Expected NAME=value");
        return await setVariable(call, { name, value });
      }),
  },
  {
    name: "env unset",
    description: "Delete a ctx.env variable",
    argument: { name: "NAME", description: "The variable" },
    run: ({ data }, name) => withRunningServer(data, (call) => setVariable(call, { name, value: null })),
  },
];

async function setVariable(
  call: CallServer,
  { name, value }: { readonly name: string; readonly value: string | null },
): Promise<string> {
  const { overridden } = await call("_admin/env:set", { changes: { [name]: value } }) as {
    readonly overridden: readonly string[];
  };
  const done = value === null ? `Forgot ${name}.` : `Set ${name}.`;
  return overridden.length === 0 ? done : `${done} The value in the server's --env-file takes precedence.`;
}

async function keys(call: CallServer): Promise<readonly Key[]> {
  return await call("_admin/deployKeys:list", {}) as readonly Key[];
}

async function list(call: CallServer): Promise<string> {
  const found = await keys(call);
  if (found.length === 0) return "There are no deploy keys.";
  const at = (time: number) => new Date(time).toISOString();
  return found.map(({ name, createdAt, lastUsedAt, revokedAt }) =>
    [
      name,
      `created ${at(createdAt)}`,
      lastUsedAt === null ? "never used" : `last used ${at(lastUsedAt)}`,
      ...revokedAt === null ? [] : [`revoked ${at(revokedAt)}`],
    ].join("  ")
  ).join("\n");
}
