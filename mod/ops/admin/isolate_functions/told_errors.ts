/** Shows database errors, which other callers do not see, to administrators. */
import { EngineError } from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";

/** Runs `run` and converts errors caused by the request into user errors. */
export async function exposeErrors<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof UserError) throw error;
    if (error instanceof EngineError) throw new UserError(error.code, error.message);
    // Invalid use of ctx.db, such as an unknown index or an invalid range.
    if (error instanceof TypeError || error instanceof RangeError) {
      throw new UserError("bad_request", error.message);
    }
    throw error;
  }
}
