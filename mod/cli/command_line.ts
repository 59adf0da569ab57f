/** From arguments and environment to a command that runs: flags, `--help` and errors are made from the options table. */
import { Command, CommanderError, Option } from "commander";
import { OptionValueError } from "../config/option_types.ts";
import {
  type CommandName,
  type ExplicitValues,
  type OptionName,
  optionsOf,
  type OptionSpec,
  type OptionValues,
} from "../config/options.ts";
import { VERSION } from "../config/version.ts";

/**
 * How the program ends: 0 when it did what it was asked to, 1 when that failed, 2 when it was asked for something it does
 * not understand, 3 when documents do not fit what was to be deployed. A second signal while it drains ends it with 128 plus the signal's number.
 */
export const exitCodes = { ok: 0, failed: 1, usage: 2, unfit: 3 } as const;

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
  /** A second one, behind it. */
  readonly second?: { readonly name: string; readonly description: string; readonly optional?: true };
  /**
   * `argument` is empty for a command without one, and when an optional one is not given; `given` has the texts of those
   * options that were given.
   */
  readonly run: (
    options: OptionValues,
    argument: string,
    given: ExplicitValues,
    second: string,
  ) => Promise<number>;
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
    for (const argument of [spec.argument, spec.second]) {
      if (argument === undefined) continue;
      const { name, description, optional } = argument;
      command.argument(optional ? `[${name}]` : `<${name}>`, description);
    }
    command.action(async (...positional: unknown[]) => {
      const given = givenTexts(command, { table, env: around.env });
      const values = optionValues(command, { table, given }) as unknown as OptionValues;
      const text = (position: number) => typeof positional[position] === "string" ? positional[position] : "";
      const [argument, second] = [spec.argument ? text(0) : "", spec.second ? text(1) : ""];
      exitCode = await spec.run(values, argument, given, second);
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
  users: "Look after users of a running server",
  "deploy-key": "Look after the keys that may deploy to a running server",
  env: "Look after the variables of ctx.env that a running server keeps",
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
  if (option.attributeName() !== (spec.attribute ?? name)) {
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

function givenTexts(
  command: Command,
  { table, env }: {
    readonly table: readonly [OptionName, OptionSpec][];
    readonly env: (name: string) => string | undefined;
  },
): ExplicitValues {
  const flags: Record<string, unknown> = command.opts();
  const texts = new Map<OptionName, { by: "flag" | "env"; text: string }>();
  for (const [name, spec] of table) {
    const flagged = flags[spec.attribute ?? name];
    const fromEnv = env(spec.env);
    if (flagged === true) texts.set(name, { by: "flag", text: "true" });
    else if (typeof flagged === "string") texts.set(name, { by: "flag", text: flagged });
    // An empty variable is one that was not filled in.
    else if (fromEnv) texts.set(name, { by: "env", text: fromEnv });
  }
  return texts;
}

function optionValues(
  command: Command,
  { table, given }: { readonly table: readonly [OptionName, OptionSpec][]; readonly given: ExplicitValues },
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, spec] of table) {
    const { by, text } = given.get(name) ?? {};
    values[name] = text === undefined
      ? spec.default
      : parsed(command, { spec, source: by === "flag" ? spec.flag : spec.env, text });
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
