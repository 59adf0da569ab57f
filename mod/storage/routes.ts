/** The storage endpoints over HTTP (contract: File storage endpoints). */
import { type Context, Hono } from "hono";
import { readRequest, type Reads } from "./reads.ts";
import { contentSecurityPolicy } from "./security_policy.ts";
import type { Uploads } from "./uploads.ts";

export interface StorageRoutesOptions {
  readonly uploads: Uploads;
  readonly reads: Reads;
  /** Address of the client that sent a request. */
  readonly clientOf: (c: Context) => string;
}

/** The sub-app for `/api/storage`. Errors leave as `ServiceError`; who mounts it turns them into responses. */
export function storageRoutes({ uploads, reads, clientOf }: StorageRoutesOptions): Hono {
  const app = new Hono();

  app.use("*", async (c, next) => {
    await next();
    if (c.error === undefined) return;
    c.header("Content-Security-Policy", contentSecurityPolicy);
    c.header("X-Content-Type-Options", "nosniff");
    c.header("Referrer-Policy", "no-referrer");
  });

  app.post("/upload", async (c) => {
    const length = c.req.header("content-length");
    const storageId = await uploads.upload({
      client: clientOf(c),
      token: c.req.query("token") ?? null,
      filename: c.req.query("filename") ?? null,
      contentType: c.req.header("content-type") ?? null,
      contentLength: length === undefined ? null : Number(length),
      body: c.req.raw.body,
    });
    return c.json({ storageId }, 200, { "Cache-Control": "no-store" });
  });

  // HEAD comes here too.
  app.get("/:id", (c) => reads.respond(readRequest(c)));
  return app;
}
