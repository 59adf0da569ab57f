/** A variable that app code asks `process.env` for and that is not there: what to ask instead is said once. */
import { printBounded } from "../process/uncaught.ts";
import type { IsolateRole } from "../../wire/messages.ts";
import { currentCall } from "./call.ts";
import { isAuthored } from "./call_errors.ts";
import { runningAction } from "./run_action.ts";

/** Names that code asks for wherever it runs. */
const USUAL = /^(?:NODE_ENV|NODE_DEBUG|DEBUG|CI|NO_COLOR|FORCE_COLOR|TZ|HOME|PATH)$/;
const NAME = /^[A-Za-z_]\w{1,80}$/;

/**
 * Takes note of a name that `process.env` does not have. `env` is what actions have: a name that is there is no mistake while
 * a file is loaded, which queries and mutations load too. `true`: there is nothing more to say of it.
 */
export function noteMissingEnv(
  name: string,
  { role, env }: { readonly role: IsolateRole; readonly env: Readonly<Record<string, string>> },
): boolean {
  if (!NAME.test(name) || USUAL.test(name)) return true;
  if (!readByApp(new Error().stack)) return false;
  const call = currentCall() ?? runningAction();
  const inAction = role === "runner";
  if (call === null && (role !== "writer" || name in env)) return false;
  const text = inAction || call === null
    ? `process.env.${name} is not set: an app's variables are ctx.env in actions, such as ctx.env.${name}, from --env-file or "syncline env set"`
    : `process.env.${name} is empty: queries and mutations have no environment. Read ctx.env.${name} in an action, and pass it on`;
  if (call === null || call.logLines.taken) printBounded(text);
  else call.logLines.add("WARN", text);
  return true;
}

/** Frames of a stack from here to the code that asks: this file's, main's, and that of `process.env`. */
const OWN_FRAMES = 3;

/** Whether the code that asks is the app's own: what packages look for is their business. */
function readByApp(stack: string | undefined): boolean {
  const frames = (stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  return isAuthored(frames[OWN_FRAMES] ?? "");
}
