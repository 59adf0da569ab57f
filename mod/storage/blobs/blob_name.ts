import { z } from "zod";

/** 128 random bits, in hexadecimal. */
export const blobName = z.string().regex(/^[0-9a-f]{32}$/);
