/**
 * The zod instance used for declarations. The service declares its functions and tables with one instance. Before the app is
 * loaded, it is replaced by the instance that app code imports, so that no validator of the service shares objects with
 * app code.
 */
import { z } from "zod";

export type Zod = Pick<
  typeof z,
  "custom" | "enum" | "int" | "object" | "record" | "strictObject" | "string" | "union" | "unknown"
>;

export let zod: Zod = z;

/** Sets the instance for all further declarations. */
export function declareWith(instance: Zod): void {
  zod = instance;
}
