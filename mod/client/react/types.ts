/** Types the hooks share. */
import type { ArgsOf, PassedArgs } from "../../protocol/client_function_names.ts";

/** Arguments of a query, or `"skip"` to not run it. */
export type QueryArgs<Name> = Record<never, never> extends ArgsOf<Name> ? [args?: PassedArgs<Name> | "skip"]
  : [args: PassedArgs<Name> | "skip"];
