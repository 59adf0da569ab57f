/** Entry point of writers and readers: registers the service's own functions. */
import { authModules } from "../auth/isolate_functions/mod.ts";
import { runIsolate } from "../functions/isolate/main.ts";
import { rateLimitModule } from "../functions/isolate/mod.ts";
import { opsModules } from "../ops/isolate_functions/mod.ts";
import { schedulerModules } from "../scheduler/isolate_functions/mod.ts";
import { storageModules } from "../storage/isolate_functions/mod.ts";

runIsolate(Deno.args.at(-1) ?? "", [
  ...authModules,
  ...schedulerModules,
  ...storageModules,
  ...opsModules,
  rateLimitModule,
]);
