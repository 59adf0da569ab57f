/** `GET /api/streams/:id`: the content of a stream while it grows, from an offset on. */
import { Hono } from "hono";
import { ServiceError } from "../errors.ts";
import { errorResponse } from "../kit/error_response.ts";
import { streamLimits } from "./limits.ts";
import type { StreamRefusal } from "./followed_streams.ts";
import { type LiveStream, STATE_HEADER } from "./live_stream.ts";

export interface StreamRoutesOptions {
  readonly find: (id: string) => LiveStream | StreamRefusal | Promise<LiveStream | StreamRefusal>;
  /** Responses that read streams now. */
  readonly readers: () => number;
  /** Sent with every response. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Mounted at `/api/streams`. Sets all headers. */
export function streamRoutes({ find, readers, headers }: StreamRoutesOptions): Hono {
  return new Hono().get("/:id", async (c) => {
    const offset = Number(c.req.query("offset") ?? 0);
    if (!Number.isSafeInteger(offset) || offset < 0) {
      return errorResponse(new ServiceError("bad_request", "offset must be a number of bytes"), headers);
    }
    const live = await find(c.req.param("id"));
    if (typeof live === "string") return errorResponse(new ServiceError(live), headers);
    // A follower may lag behind the client, which has read from another server.
    if (live.end !== null && offset > live.size) {
      return errorResponse(new ServiceError("bad_request", `The stream has ${live.size} bytes`), headers);
    }
    if (readers() >= streamLimits.readersMax) return errorResponse(new ServiceError("overloaded"), headers);
    return new Response(c.req.method === "HEAD" ? null : live.read(offset), {
      headers: {
        ...headers,
        "Content-Type": live.contentType,
        // A response that began while the stream was open may end early: the client then requests the rest.
        [STATE_HEADER]: live.end ?? "open",
        // Without transformations, neither this server nor a proxy waits for more content.
        "Cache-Control": "no-store, no-transform",
        "X-Accel-Buffering": "no",
        // A page of this origin must not be made of it.
        "Content-Security-Policy": "default-src 'none'; sandbox",
      },
    });
  });
}
