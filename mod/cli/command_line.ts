/** Parses arguments and environment and runs a command. Flags, `--help` and errors come from the options table. */
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
 * Exit codes: 0 for success, 1 for failure, 2 for invalid usage, 3 if documents do not match the schema of a deploy.
 * A second signal during a graceful stop ends the process with 128 plus the signal number.
 */
export const exitCodes = { ok: 0, failed: 1, usage: 2, unfit: 3 } as const;

/** A command. `run` returns the exit code. */
export interface CommandSpec {
  /** Two words for a command in a group. */
  readonly name: CommandName;
  readonly description: string;
  readonly argument?: {
    readonly name: string;
    readonly description: string;
    readonly optional?: true;
  };
  /** The second positional argument. */
  readonly second?: { readonly name: string; readonly description: string; readonly optional?: true };
  /** `argument` is empty if absent. `explicit` has the raw text of the options that were set. */
  readonly run: (
    options: OptionValues,
    argument: string,
    given: ExplicitValues,
    second: string,
  ) => Promise<number>;
}

export interface CommandEnvironment {
  readonly args: readonly string[];
  /** Reads one environment variable. */
  readonly env: (name: string) => string | undefined;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Runs the command named by the arguments and returns the exit code. Rejects only if the command does. */
export async function runCommandLine(
  commands: readonly CommandSpec[],
  around: CommandEnvironment,
): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const program = new Command("syncline")
    .description("A self-hosted realtime backend: functions, subscriptions and data in one program.")
    .version(VERSION, "--version", "Print the version");
  const plain = () => false;
  const output = {
    writeOut: around.out,
    writeErr: around.err,
    // Set explicitly, otherwise commander would detect it from unrelated environment variables.
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

const GROUPS: Readonly<Record<string, string>> = {
  admin: "Manage administrators; works with and without a running server",
  replica: "Manage replicas",
  users: "Manage users of a running server",
  "deploy-key": "Manage deploy keys of a running server",
  "api-key": "Manage API keys of a running server",
  env: "Manage the ctx.env variables stored by a running server",
};

function group(program: Command, name: string): Command {
  return program.commands.find((command) => command.name() === name) ??
    program.command(name).description(GROUPS[name] ?? "").exitOverride();
}

/** Builds the commander option: flag, description with default and environment variable, and parser. */
function commanderOption(name: OptionName, spec: OptionSpec): Option {
  const names = spec.former === undefined ? spec.flag : `${spec.former.flag}, ${spec.flag}`;
  const flags = spec.placeholder === null ? names : `${names} <${spec.placeholder}>`;
  const facts = [spec.defaultText === null ? [] : [`default: ${spec.defaultText}`], `env: ${spec.env}`]
    .flat();
  const option = new Option(flags, `${spec.description} (${facts.join("; ")})`);
  if (option.attributeName() !== (spec.attribute ?? name)) {
    throw new TypeError(
      `Cannot use option ${spec.flag}: its name in the table must be ${option.attributeName()}`,
    );
  }
  // Commander calls the parser for values only; a switch is true if present.
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
    const value = flags[spec.attribute ?? name];
    // Commander sets the attribute of `--static` to false for `--no-static`, which overrides SYNCLINE_STATIC too.
    const flagged = spec.flag.startsWith("--no-") ? value === false || undefined : value;
    const fromEnv = env(spec.env) || (spec.former && env(spec.former.env));
    if (flagged === true) texts.set(name, { by: "flag", text: "true" });
    else if (typeof flagged === "string") texts.set(name, { by: "flag", text: flagged });
    // Treat an empty variable as unset.
    else if (fromEnv && flagged !== false) texts.set(name, { by: "env", text: fromEnv });
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
