/** `--env-file`: variables of `ctx.env`, one a line, and what is to be said of lines that are none. */
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import { reasonOf, StartError } from "./start_error.ts";

export interface EnvFile {
  readonly values: Readonly<Record<string, string>>;
  /** A sentence for each line that is left out, or most likely means something else. They hold no values. */
  readonly hints: readonly string[];
}

/** Lines that are told of; a file of another kind has no others. */
const HINTS_MAX = 5;

/** Throws a `StartError` for a file that cannot be read. */
export async function readEnvFile(given: string): Promise<EnvFile> {
  const path = resolve(given);
  try {
    const text = await Deno.readTextFile(path);
    const values = Object.entries(parseEnv(text)).filter((entry): entry is [string, string] =>
      entry[1] !== undefined
    );
    return { values: Object.fromEntries(values), hints: envFileHints(text, path) };
  } catch (error) {
    throw new StartError(`Cannot read the environment file "${path}": ${reasonOf(error)}`, { cause: error });
  }
}

const VARIABLE = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$/;
const ALMOST = /^\s*(?:(?:export|set|setx)\s+)?["']?([\w.-]{1,80})/i;

/** What is to be said of the lines of a file. */
export function envFileHints(text: string, path: string): readonly string[] {
  const hints: string[] = [];
  /** The quote that a value of several lines ends with. */
  let quote = "";
  for (const [index, line] of text.replace(/^\uFEFF/, "").split(/\r?\n/).entries()) {
    if (quote !== "") {
      if (line.includes(quote)) quote = "";
      continue;
    }
    if (/^\s*(#|$)/.test(line)) continue;
    const [, name, value = ""] = VARIABLE.exec(line) ?? [];
    const at = `${path}, line ${index + 1}`;
    if (name === undefined) {
      const [, almost = ""] = ALMOST.exec(line) ?? [];
      const fix = almost === "" ? "NAME=value" : `${almost.replaceAll(/\W/g, "_").toUpperCase()}=value`;
      hints.push(`${at} is left out, as it is no variable: write it as ${fix}`);
    } else if (name.startsWith("SYNCLINE_")) {
      hints.push(
        `${at} sets ${name} in ctx.env: an option of the server is set in its own environment, or by its flag`,
      );
    }
    const [, opened = "", rest = ""] = /^(["'`])(.*)$/.exec(value) ?? [];
    if (opened !== "" && !rest.includes(opened)) quote = opened;
  }
  const more = hints.length - HINTS_MAX;
  return more <= 0 ? hints : [...hints.slice(0, HINTS_MAX), `${path}: ${more} more lines are like that`];
}
