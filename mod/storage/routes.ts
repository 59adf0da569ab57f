/** HTTP endpoints of file storage (UP, FR). */
import { type Context, Hono } from "hono";
import type { FileTraffic } from "./stored_file.ts";
import { contentSecurityPolicy, readRequest, type Reads } from "./reads/reads.ts";
import type { Uploads } from "./uploads/uploads.ts";

export interface UploadRoutesOptions {
  readonly uploads: Uploads;
  /** Returns the client address of a request. */
  readonly clientOf: (c: Context) => string;
}

/** Upload routes. Errors are thrown as `ServiceError` for the parent app. */
export function uploadRoutes({ uploads, clientOf }: UploadRoutesOptions): Hono {
  const app = new Hono();
  app.use("*", async (c, next) => {
    await next();
    harmless(c);
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
  return app;
}

/** Read routes. Their responses have all headers. */
export function readRoutes(
  reads: Reads,
  { extraHeaders, traffic }: {
    readonly extraHeaders: Readonly<Record<string, string>>;
    readonly traffic: FileTraffic;
  },
): Hono {
  const app = new Hono();
  // Includes HEAD.
  app.get("/:id", harmlessErrors, async (c, next) => {
    await next();
    if (c.error === undefined) return;
    for (const [name, value] of Object.entries(extraHeaders)) c.header(name, value);
  }, async (c) => {
    const response = await reads.respond(readRequest(c));
    if (response.ok && response.body !== null) traffic.read(Number(response.headers.get("content-length")));
    return response;
  });
  return app;
}

async function harmlessErrors(c: Context, next: () => Promise<void>): Promise<void> {
  await next();
  if (c.error !== undefined) harmless(c);
}

/** Restricts what browsers may do with a response. */
function harmless(c: Context): void {
  c.header("Content-Security-Policy", contentSecurityPolicy);
  c.header("X-Content-Type-Options", "nosniff");
  c.header("Referrer-Policy", "no-referrer");
}
