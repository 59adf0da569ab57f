/** The commands `env ...`, which talk to a running server on the same machine. */
import { StartError } from "../../config/start_error.ts";
import type { CommandSpec } from "../command_line.ts";
import { type CallServer, withRunningServer } from "../running_server.ts";

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
