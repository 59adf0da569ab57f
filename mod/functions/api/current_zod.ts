/**
 * The zod that what is declared from now on is made with. The service declares its functions and tables with its own; before
 * the app is loaded that gives way to another instance of zod, the one that app code imports: so no validator of the service
 * shares anything with what app code can reach.
 */
import { z } from "zod";

export type Zod = Pick<
  typeof z,
  "custom" | "enum" | "int" | "object" | "record" | "strictObject" | "string" | "union" | "unknown"
>;

export let zod: Zod = z;

/** From now on what is declared is made with this instance. */
export function declareWith(instance: Zod): void {
  zod = instance;
}
