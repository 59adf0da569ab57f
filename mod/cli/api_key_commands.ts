/** The commands `api-key ...` and `deploy-key ...`, which talk to a running server on the same machine. */
import { StartError } from "../config/start_error.ts";
import type { CommandSpec } from "./command_line.ts";
import { type CallServer, withRunningServer } from "./running_server.ts";

interface Key {
  readonly keyId: string;
  readonly name: string;
  readonly shown: string;
  readonly userId: string | null;
  readonly functions: readonly string[];
  readonly deploy: boolean;
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
        return await create(call, { name, functions });
      }),
  },
  ...listAndRevoke("API key", { prefix: "api-key", deploy: false }),
];

export const deployKeyCommands: readonly CommandSpec[] = [
  {
    name: "deploy-key create",
    description: "Create a key that only permits deploys; it is printed once",
    argument: NAME,
    run: ({ data }, name) => withRunningServer(data, (call) => create(call, { name, deploy: true })),
  },
  ...listAndRevoke("deploy key", { prefix: "deploy-key", deploy: true }),
];

async function create(call: CallServer, args: Record<string, unknown>): Promise<string> {
  return (await call("_admin/apiKeys:create", args) as { readonly key: string }).key;
}

/** The commands of one kind of keys. `kind` is its singular. */
function listAndRevoke(
  kind: string,
  { prefix, deploy }: { readonly prefix: "api-key" | "deploy-key"; readonly deploy: boolean },
): readonly CommandSpec[] {
  const keys = async (call: CallServer) =>
    (await call("_admin/apiKeys:list", {}) as readonly Key[]).filter((key) => key.deploy === deploy);
  return [
    {
      name: `${prefix} list`,
      description: `List the ${kind}s, newest first`,
      run: ({ data }) =>
        withRunningServer(data, async (call) => {
          const found = await keys(call);
          return found.length === 0 ? `There are no ${kind}s.` : found.map(line).join("\n");
        }),
    },
    {
      name: `${prefix} revoke`,
      description: `Revoke ${deploy ? "a" : "an"} ${kind}, by its name or first characters`,
      argument: NAME,
      run: ({ data }, name) =>
        withRunningServer(data, async (call) => {
          const [found, ...more] = (await keys(call)).filter((key) => [key.name, key.shown].includes(name));
          if (found === undefined) throw new StartError(`There is no ${kind} ${name}.`);
          if (more.length > 0) {
            throw new StartError(`Several ${kind}s are named ${name}: pass the first characters.`);
          }
          await call("_admin/apiKeys:revoke", { keyId: found.keyId });
          return `Revoked ${kind} ${found.name}.`;
        }),
    },
  ];
}

function line({ name, shown, userId, functions, deploy, createdAt, lastUsedAt, expiresAt }: Key): string {
  const at = (time: number) => new Date(time).toISOString();
  return [
    name,
    shown,
    ...deploy ? [] : [functions.join(","), userId === null ? "service" : `user ${userId}`],
    `created ${at(createdAt)}`,
    lastUsedAt === null ? "never used" : `last used ${at(lastUsedAt)}`,
    ...expiresAt === null ? [] : [`expires ${at(expiresAt)}`],
  ].join("  ");
}
