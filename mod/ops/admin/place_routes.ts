/** `POST /places/{name}/check`: tests the configured storage locations (AD, DA10). */
import { Hono } from "hono";
import { ServiceError } from "../../errors.ts";
import { type LocationProbe, probeLocation } from "../../kit/locations/location_probe.ts";
import { opsLimits } from "../limits.ts";
import type { AdminEnv } from "./admin_guard.ts";

/** By name; `null` if not configured. */
export type TestedLocations = Readonly<Record<"files" | "replica", () => LocationProbe | null>>;

/** Throws `not_found` for a location that is not configured, and `overloaded` if its test is already running. */
export function locationRoutes(places: TestedLocations): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  const underWay = new Set<string>();
  app.post("/places/:name/check", async (c) => {
    const name = c.req.param("name");
    const tried = Object.hasOwn(places, name) ? places[name as keyof TestedLocations]() : null;
    if (tried === null) throw new ServiceError("not_found", `No location is configured for "${name}"`);
    if (underWay.has(name)) {
      throw new ServiceError("overloaded", "A test of this location is already running. Try again later.");
    }
    underWay.add(name);
    try {
      return c.json(await probeLocation(tried, { stepMs: opsLimits.placeStepMs }));
    } finally {
      underWay.delete(name);
    }
  });
  return app;
}
