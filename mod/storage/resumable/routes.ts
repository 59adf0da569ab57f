/** HTTP routes of the tus protocol: `/<token of the upload URL>` below the mount path is an upload. */
import { type Context, Hono } from "hono";
import { MethodNotAllowedError, ServiceError } from "../../errors.ts";
import { contentSecurityPolicy } from "../reads/reads.ts";
import { checksumAlgorithms, tusVersion } from "./upload.ts";
import type { ResumableUploads, TusRequest, UploadState } from "./uploads.ts";

export interface ResumableRoutesOptions {
  readonly uploads: ResumableUploads;
  /** Maximum file size in bytes. */
  readonly bytesMax: number;
  /** Prefix of URLs without a trailing slash; empty for URLs relative to the server. */
  readonly baseUrl: string;
  /** Returns the client address of a request. */
  readonly clientOf: (c: Context) => string;
}

export const storageIdHeader = "Syncline-Storage-Id";

const extensions = "creation,creation-with-upload,expiration,checksum,termination";
const methods = "POST, HEAD, PATCH, DELETE, OPTIONS";
const requestHeaders = [
  "Content-Type",
  "Tus-Resumable",
  "Upload-Checksum",
  "Upload-Length",
  "Upload-Metadata",
  "Upload-Offset",
  "X-HTTP-Method-Override",
  "X-Request-ID",
  "X-Requested-With",
];
const responseHeaders = [
  "Location",
  "Retry-After",
  storageIdHeader,
  "Tus-Checksum-Algorithm",
  "Tus-Extension",
  "Tus-Max-Size",
  "Tus-Resumable",
  "Tus-Version",
  "Upload-Expires",
  "Upload-Length",
  "Upload-Metadata",
  "Upload-Offset",
];

/** Creates the routes. Responses have all headers. Errors are thrown as `ServiceError` for the parent app. */
export function resumableRoutes({ uploads, bytesMax, baseUrl, clientOf }: ResumableRoutesOptions): Hono {
  const app = new Hono();
  const about = {
    "Tus-Version": tusVersion,
    "Tus-Extension": extensions,
    "Tus-Max-Size": String(bytesMax),
    "Tus-Checksum-Algorithm": checksumAlgorithms.join(","),
    "Access-Control-Allow-Methods": methods,
    "Access-Control-Allow-Headers": requestHeaders.join(", "),
    "Access-Control-Max-Age": "7200",
  };

  app.use("*", async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(commonHeaders)) c.header(name, value);
    if (c.error instanceof ServiceError && c.error.code === "unsupported_tus_version") {
      c.header("Tus-Version", tusVersion);
    }
  });
  app.options("*", (c) => c.body(null, 204, about));
  app.use("*", async (c, next) => {
    if (c.req.header("tus-resumable") !== tusVersion) throw new ServiceError("unsupported_tus_version");
    await next();
  });

  app.post("/", async (c) => {
    const request = tusRequest(c, { token: c.req.query("token") ?? null, clientOf });
    const state = await uploads.create(request);
    const location = `${baseUrl}${c.req.path.replace(/\/$/, "")}/${request.token}`;
    return c.body(null, 201, { ...stateHeaders(state), Location: location });
  });
  // Includes HEAD.
  app.all("/:token", async (c) => {
    const request = tusRequest(c, { token: c.req.param("token"), clientOf });
    switch (methodOf(c)) {
      case "HEAD": {
        const state = await uploads.status(request);
        return c.body(null, 200, { ...stateHeaders(state), "Upload-Length": String(state.length) });
      }
      case "PATCH":
        return c.body(null, 204, stateHeaders(await uploads.append(request)));
      case "DELETE":
        await uploads.remove(request);
        return c.body(null, 204);
      default:
        throw new MethodNotAllowedError("HEAD, PATCH, DELETE, OPTIONS");
    }
  });
  app.all("/", () => {
    throw new MethodNotAllowedError("POST, OPTIONS");
  });
  return app;
}

/** Headers of every response. Uploads are allowed from any origin, because the token is the credential. */
const commonHeaders = {
  "Tus-Resumable": tusVersion,
  "Cache-Control": "no-store",
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": responseHeaders.join(", "),
  "Content-Security-Policy": contentSecurityPolicy,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

function stateHeaders({ offset, metadata, expiresAt, storageId }: UploadState): Record<string, string> {
  return {
    "Upload-Offset": String(offset),
    ...(metadata !== null && { "Upload-Metadata": metadata }),
    ...(expiresAt !== null && { "Upload-Expires": new Date(expiresAt).toUTCString() }),
    ...(storageId !== null && { [storageIdHeader]: storageId }),
  };
}

/** Applies `X-HTTP-Method-Override`, for clients limited to POST. */
function methodOf(c: Context): string {
  const { method } = c.req;
  return method === "POST" ? c.req.header("x-http-method-override")?.toUpperCase() ?? method : method;
}

function tusRequest(
  c: Context,
  { token, clientOf }: { readonly token: string | null; readonly clientOf: (c: Context) => string },
): TusRequest {
  return {
    client: clientOf(c),
    token,
    header: (name) => c.req.header(name) ?? null,
    body: c.req.raw.body,
  };
}
