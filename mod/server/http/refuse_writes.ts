/** Refuses writes to accounts, files and operations on a follower. */
import type { MiddlewareHandler } from "hono";
import { ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import { apiHeaders } from "./api_headers.ts";

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Reads with a filter in the body. */
const READS_BY_BODY = /^\/api\/admin\/export\//;

/** Function calls pass: mutations are refused with the same code where they would run. */
export const refuseWrites: MiddlewareHandler = async (c, next) => {
  const { method, path } = c.req;
  const isRead = READS.has(method) || READS_BY_BODY.test(path);
  if (isRead || !/^\/api\/(?:auth|storage|admin)\//.test(path)) return await next();
  return errorResponse(new ServiceError("read_only"), apiHeaders);
};
