/** Errors of the engine, which other callers are not told: administrators see why the database refuses something. */
import { EngineError } from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";

/** Runs work; what is wrong with what was asked of the database becomes a user error. */
export async function toldErrors<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof UserError) throw error;
    if (error instanceof EngineError) throw new UserError(error.code, error.message);
    // What is asked of ctx.db in a wrong way: an unknown index, a range that does not fit it.
    if (error instanceof TypeError || error instanceof RangeError) {
      throw new UserError("bad_request", error.message);
    }
    throw error;
  }
}
