/** What a server that follows another refuses before anything is looked at: writes to accounts, files and operations. */
import type { MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import { apiHeaders } from "./api_headers.ts";

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Function calls pass: mutations are refused where they would run, with the same code. */
export const refuseWrites: MiddlewareHandler = async (c, next) => {
  if (READS.has(c.req.method) || !/^\/api\/(?:auth|storage|admin)\//.test(c.req.path)) return await next();
  return errorResponse(new ServiceError("read_only"), apiHeaders);
};
