/** `POST /places/{name}/check`: whether the server can use the places it was told to keep things in (AD, DA10). */
import { Hono } from "hono";
import { ServiceError } from "../../errors.ts";
import { type LocationProbe, probeLocation } from "../../kit/locations/location_probe.ts";
import { opsLimits } from "../limits.ts";
import type { AdminEnv } from "./admin_guard.ts";

/** By name; `null` where this server has no such place. */
export type Places = Readonly<Record<"files" | "replica", () => LocationProbe | null>>;

/** Throws `not_found` for a place there is not, and `overloaded` while it is tried already. */
export function placeRoutes(places: Places): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  const underWay = new Set<string>();
  app.post("/places/:name/check", async (c) => {
    const name = c.req.param("name");
    const tried = Object.hasOwn(places, name) ? places[name as keyof Places]() : null;
    if (tried === null) throw new ServiceError("not_found", `This server has no place for "${name}"`);
    if (underWay.has(name)) throw new ServiceError("overloaded", "The place is being tried, try again later");
    underWay.add(name);
    try {
      return c.json(await probeLocation(tried, { stepMs: opsLimits.placeStepMs }));
    } finally {
      underWay.delete(name);
    }
  });
  return app;
}
