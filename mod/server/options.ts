/**
 * Every option of the command line, once. Flags, environment names, defaults, checks, `--help` and the table in the
 * README are made from this table; nothing else in the program reads arguments or its own environment variables.
 */
import { parseHost, parseNetList, parsePath, parsePort, parseSwitch } from "./option_types.ts";

export type CommandName = "serve";

export interface OptionSpec<Value = unknown, Default = unknown> {
  /** Long form, with two dashes. */
  readonly flag: `--${string}`;
  /** Name of the value in `--help`; `null` for a switch, which has none. */
  readonly placeholder: string | null;
  /** Environment variable that gives the value when the flag does not. */
  readonly env: `SYNCLINE_${string}`;
  /** Makes the value from text. Throws `OptionValueError`. */
  readonly parse: (text: string) => Value;
  readonly default: Default;
  /** How `--help` tells the default; `null` when there is nothing to tell. */
  readonly defaultText: string | null;
  readonly description: string;
  readonly commands: readonly CommandName[];
}

function option<Value, Default>(spec: OptionSpec<Value, Default>): OptionSpec<Value, Default> {
  return spec;
}

/** The port taken when none is asked for; when it is in use, the next free one above it. */
export const DEFAULT_PORT = 3210;

export const options = {
  host: option({
    flag: "--host",
    placeholder: "address",
    env: "SYNCLINE_HOST",
    parse: parseHost,
    default: "127.0.0.1",
    defaultText: "127.0.0.1",
    description: "Address to listen on; 0.0.0.0 lets other machines connect",
    commands: ["serve"],
  }),
  port: option({
    flag: "--port",
    placeholder: "number",
    env: "SYNCLINE_PORT",
    parse: parsePort,
    default: null,
    defaultText: `${DEFAULT_PORT}, or the next free one`,
    description: "Port to listen on; 0 takes any free one",
    commands: ["serve"],
  }),
  data: option({
    flag: "--data",
    placeholder: "folder",
    env: "SYNCLINE_DATA",
    parse: parsePath,
    default: "./data",
    defaultText: "./data",
    description: "Folder of the database and everything else that is kept; created when missing",
    commands: ["serve"],
  }),
  functions: option({
    flag: "--functions",
    placeholder: "folder",
    env: "SYNCLINE_FUNCTIONS",
    parse: parsePath,
    default: null,
    defaultText: "./functions, or the bundled chat example",
    description: "Folder of the app's queries, mutations and actions",
    commands: ["serve"],
  }),
  static: option({
    flag: "--static",
    placeholder: "folder",
    env: "SYNCLINE_STATIC",
    parse: parsePath,
    default: null,
    defaultText: "none; the example brings its own",
    description: "Folder of the app's static frontend",
    commands: ["serve"],
  }),
  dev: option({
    flag: "--dev",
    placeholder: null,
    env: "SYNCLINE_DEV",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Reload functions when they are edited, show clients real error messages and log lines",
    commands: ["serve"],
  }),
  actionNet: option({
    flag: "--action-net",
    placeholder: "hosts",
    env: "SYNCLINE_ACTION_NET",
    parse: parseNetList,
    default: null,
    defaultText: "any host",
    description: "Hosts that actions may reach, separated by commas",
    commands: ["serve"],
  }),
  envFile: option({
    flag: "--env-file",
    placeholder: "file",
    env: "SYNCLINE_ENV_FILE",
    parse: parsePath,
    default: null,
    defaultText: "none",
    description: "File of NAME=value lines that actions see as ctx.env",
    commands: ["serve"],
  }),
} as const;

export type OptionName = keyof typeof options;

type ValueOf<Spec> = Spec extends OptionSpec<infer Value, infer Default> ? Value | Widened<Default> : never;
type Widened<Value> = Value extends boolean ? boolean : Value;

/** What `serve` was asked to do, checked but not yet looked up on the disk. */
export type ServeOptions = { readonly [Name in OptionName]: ValueOf<(typeof options)[Name]> };

/** The options of one command, by name, in the order of the table. */
export function optionsOf(command: CommandName): [OptionName, OptionSpec][] {
  return (Object.entries(options) as [OptionName, OptionSpec][])
    .filter(([, spec]) => spec.commands.includes(command));
}
