/** From arguments and environment to a command that runs: flags, `--help` and errors are made from the options table. */
import { Command, CommanderError, Option } from "commander";
import { OptionValueError } from "../config/option_types.ts";
import {
  type CommandName,
  type OptionName,
  optionsOf,
  type OptionSpec,
  type OptionValues,
} from "../config/options.ts";
import { VERSION } from "../config/version.ts";

/**
 * How the program ends: 0 when it did what it was asked to, 1 when that failed, 2 when it was asked for something it does
 * not understand. A second signal while it drains ends it with 128 plus the signal's number.
 */
export const exitCodes = { ok: 0, failed: 1, usage: 2 } as const;

/** One command of the program. `run` gives the exit code. */
export interface CommandSpec {
  /** Two words for a command of a group. */
  readonly name: CommandName;
  readonly description: string;
  /** The one argument of a command that has one. */
  readonly argument?: {
    readonly name: string;
    readonly description: string;
    readonly optional?: true;
  };
  /** `argument` is empty for a command without one, and when an optional one is not given. */
  readonly run: (options: OptionValues, argument: string) => Promise<number>;
}

export interface Surroundings {
  readonly args: readonly string[];
  /** Reads one environment variable. */
  readonly env: (name: string) => string | undefined;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Runs the command that the arguments name and gives the exit code. Rejects only with what a command rejects with. */
export async function runCommandLine(
  commands: readonly CommandSpec[],
  around: Surroundings,
): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const program = new Command("syncline")
    .description("A self-hosted realtime backend: functions, subscriptions and data in one program.")
    .version(VERSION, "--version", "Print the version");
  const plain = () => false;
  const output = {
    writeOut: around.out,
    writeErr: around.err,
    // Told, not asked: the library would read variables that are none of the server's.
    getOutHasColors: plain,
    getErrHasColors: plain,
  };
  program.exitOverride().configureOutput(output);
  for (const spec of commands) {
    const [first = "", second] = spec.name.split(" ");
    const parent = second === undefined ? program : group(program, first);
    const command = parent.command(second ?? first).description(spec.description).exitOverride()
      .configureOutput(output)
      .configureHelp({ optionDescription: (option) => option.description })
      .showHelpAfterError(`See "syncline ${spec.name} --help".`);
    const table = optionsOf(spec.name);
    for (const [name, option] of table) command.addOption(commanderOption(name, option));
    if (spec.argument) {
      const { name, description, optional } = spec.argument;
      command.argument(optional ? `[${name}]` : `<${name}>`, description);
    }
    command.action(async (argument: unknown) => {
      const values = optionValues(command, { table, env: around.env }) as unknown as OptionValues;
      exitCode = await spec.run(values, spec.argument && typeof argument === "string" ? argument : "");
    });
  }
  try {
    await program.parseAsync([...around.args], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
  return exitCode;
}

/** What the commands of a group are for. */
const GROUPS: Readonly<Record<string, string>> = {
  admin: "Look after administrators, while the server runs or not",
  replica: "Look after replicas, wherever they are",
};

/** The command under which those of a group stand. */
function group(program: Command, name: string): Command {
  return program.commands.find((command) => command.name() === name) ??
    program.command(name).description(GROUPS[name] ?? "").exitOverride();
}

/** The long form, the description with default and environment name, and the check of one option. */
function commanderOption(name: OptionName, spec: OptionSpec): Option {
  const flags = spec.placeholder === null ? spec.flag : `${spec.flag} <${spec.placeholder}>`;
  const facts = [spec.defaultText === null ? [] : [`default: ${spec.defaultText}`], `env: ${spec.env}`]
    .flat();
  const option = new Option(flags, `${spec.description} (${facts.join("; ")})`);
  if (option.attributeName() !== name) {
    throw new TypeError(
      `Cannot use the option ${spec.flag}: its name in the table has to be ${option.attributeName()}`,
    );
  }
  // Commander calls this for values only; a switch is true when it is there.
  if (spec.placeholder === null) return option;
  return option.argParser((text: string, before?: string) =>
    spec.repeatable && before !== undefined ? `${before},${text}` : text
  );
}

function optionValues(
  command: Command,
  { table, env }: {
    readonly table: readonly [OptionName, OptionSpec][];
    readonly env: (name: string) => string | undefined;
  },
): Record<string, unknown> {
  const given: Record<string, unknown> = command.opts();
  const values: Record<string, unknown> = {};
  for (const [name, spec] of table) {
    const flagged = given[name];
    const fromEnv = env(spec.env);
    if (flagged === true) values[name] = true;
    else if (typeof flagged === "string") {
      values[name] = parsed(command, { spec, source: spec.flag, text: flagged });
    } // An empty variable is one that was not filled in.
    else if (fromEnv) values[name] = parsed(command, { spec, source: spec.env, text: fromEnv });
    else values[name] = spec.default;
  }
  return values;
}

function parsed(
  command: Command,
  { spec, source, text }: { readonly spec: OptionSpec; readonly source: string; readonly text: string },
): unknown {
  try {
    return spec.parse(text);
  } catch (error) {
    if (!(error instanceof OptionValueError)) throw error;
    command.error(`error: invalid value for ${source}: ${error.message}`);
  }
}
