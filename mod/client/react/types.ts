/** Types the hooks share. */
import type { ArgsOf } from "../../protocol/client_function_names.ts";

/** Arguments of a query, or `"skip"` to not run it. */
export type QueryArgs<Name> = Record<never, never> extends ArgsOf<Name> ? [args?: ArgsOf<Name> | "skip"]
  : [args: ArgsOf<Name> | "skip"];
