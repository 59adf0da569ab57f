/** Reads `--env-file`: the variables of `ctx.env`, and warnings about invalid lines. */
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import { nearest } from "../kit/nearest.ts";
import { fileErrorReason, StartError } from "./start_error.ts";

/** Returns a sentence for each unknown name that resembles a known one. Others may be used by the app itself. */
export function environmentSuggestions(names: readonly string[], known: readonly string[]): string[] {
  return names.filter((name) => /^SYNCLINE_/i.test(name) && !known.includes(name)).flatMap((name) => {
    const meant = nearest(name.toUpperCase(), known);
    return meant === null ? [] : [`Unknown variable ${name}: did you mean ${meant}?`];
  });
}

export interface EnvFile {
  readonly values: Readonly<Record<string, string>>;
  /** A sentence for each line that is ignored or probably a mistake. Contains no values. */
  readonly warnings: readonly string[];
}

/** Maximum number of warnings; a file of another format would produce one for each line. */
const WARNINGS_MAX = 5;

/** Reads the file. Throws a `StartError` if that fails. */
export async function readEnvFile(given: string): Promise<EnvFile> {
  const path = resolve(given);
  try {
    const text = await Deno.readTextFile(path);
    const values = Object.entries(parseEnv(text)).filter((entry): entry is [string, string] =>
      entry[1] !== undefined
    );
    return { values: Object.fromEntries(values), warnings: envFileWarnings(text, path) };
  } catch (error) {
    throw new StartError(`Cannot read the environment file "${path}": ${fileErrorReason(error)}`, {
      code: "environment",
      cause: error,
    });
  }
}

const VARIABLE = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$/;
const ALMOST = /^\s*(?:(?:export|set|setx)\s+)?["']?([\w.-]{1,80})/i;

export function envFileWarnings(text: string, path: string): readonly string[] {
  const hints: string[] = [];
  /** The quote that ends the current multi-line value. */
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
      hints.push(`${at} is not a variable and is ignored: write it as ${fix}`);
    } else if (name.startsWith("SYNCLINE_")) {
      hints.push(
        `${at} sets ${name} in ctx.env only: set server options by flag or in the server's own environment`,
      );
    }
    const [, opened = "", rest = ""] = /^(["'`])(.*)$/.exec(value) ?? [];
    if (opened !== "" && !rest.includes(opened)) quote = opened;
  }
  const more = hints.length - WARNINGS_MAX;
  return more <= 0 ? hints : [...hints.slice(0, WARNINGS_MAX), `${path}: ${more} more such lines`];
}
