/** Explains once per name why a variable of `process.env` or `ctx.env` is missing. */
import { printBounded } from "../process/uncaught.ts";
import type { IsolateRole } from "../../wire/messages.ts";
import { currentCall } from "./call.ts";
import { isAuthored } from "./call_errors.ts";
import { runningAction } from "./run_action.ts";

/** Names that libraries commonly read. */
const USUAL = /^(?:NODE_ENV|NODE_DEBUG|DEBUG|CI|NO_COLOR|FORCE_COLOR|TZ|HOME|PATH)$/;
const NAME = /^[A-Za-z_]\w{1,80}$/;

/**
 * Reports a missing variable of `process.env`, or with `role` `ctx` of `ctx.env`. `env` is the environment of actions: a variable in it is no mistake while a
 * file is loaded, because queries and mutations load the file too.
 * @returns Whether nothing more needs to be reported for this name.
 */
export function noteMissingEnv(
  name: string,
  { role, env }: { readonly role: IsolateRole | "ctx"; readonly env: Readonly<Record<string, string>> },
): boolean {
  if (!NAME.test(name) || USUAL.test(name)) return true;
  if (!readByApp(new Error().stack)) return false;
  const call = currentCall() ?? runningAction();
  const inAction = role === "runner";
  if (call === null && (role !== "writer" || name in env)) return false;
  const text = role === "ctx"
    ? `ctx.env.${name} is not set: add it to .env for "syncline dev", or run "syncline env set ${name}=value" on the server`
    : inAction || call === null
    ? `process.env.${name} is not set: an app's variables are ctx.env in actions, such as ctx.env.${name}, from --env-file or "syncline env set"`
    : `process.env.${name} is empty: queries and mutations have no environment. Read ctx.env.${name} in an action, and pass it on`;
  if (call === null || call.logLines.taken) printBounded(text);
  else call.logLines.add("WARN", text);
  return true;
}

/** Stack frames between this function and the reading code: this file, main and `process.env`. */
const OWN_FRAMES = 3;

/** Whether the app's own code reads the variable. Reads by packages are ignored. */
function readByApp(stack: string | undefined): boolean {
  const frames = (stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return isAuthored(frames[OWN_FRAMES] ?? "");
}
