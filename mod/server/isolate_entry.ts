/** The isolate of a server: with the functions of every part of the service that has some. */
import { authModules } from "../auth/functions.ts";
import { runIsolate } from "../functions/isolate/main.ts";
import { opsModules } from "../ops/functions.ts";
import { schedulerModules } from "../scheduler/functions.ts";
import { storageModules } from "../storage/functions.ts";

runIsolate(Deno.args.at(-1) ?? "", [...authModules, ...schedulerModules, ...storageModules, ...opsModules]);
