/** Request headers of the tus protocol (1.0: core, creation, checksum). */
import { Buffer } from "node:buffer";
import { ServiceError } from "../../errors.ts";
import { resumableLimits } from "../limits.ts";

/** The only supported protocol version. */
export const tusVersion = "1.0.0";

export const chunkContentType = "application/offset+octet-stream";

/** Supported checksum algorithms; the protocol requires sha1. */
export const checksumAlgorithms = ["sha1", "sha256", "md5"] as const;

export type ChecksumAlgorithm = typeof checksumAlgorithms[number];

/** Expected checksum of a body. */
export interface Checksum {
  readonly algorithm: ChecksumAlgorithm;
  readonly digest: Uint8Array;
}

const COUNT = /^(?:0|[1-9]\d{0,14})$/;
const PAIR = /^([\x21-\x2b\x2d-\x7e]+)(?: ([A-Za-z0-9+/]*={0,2}))?$/;
const CHECKSUM = /^([a-z0-9]{1,16}) ([A-Za-z0-9+/]+={0,2})$/;

/** Parses a number of bytes; `null` without the header. Throws `bad_request` for anything else. */
export function byteCount(name: string, value: string | null): number | null {
  if (value === null) return null;
  if (!COUNT.test(value)) throw new ServiceError("bad_request", `${name} must be a number of bytes`);
  return Number(value);
}

/** File name and type from an `Upload-Metadata` header; `null` if missing or empty. */
export interface UploadMetadata {
  readonly filename: string | null;
  readonly filetype: string | null;
}

/** Throws `bad_request` if the header is malformed, repeats a key or is too long. */
export function uploadMetadata(value: string | null): UploadMetadata {
  const pairs = new Map<string, string>();
  if (value !== null && value.length > resumableLimits.metadataCharsMax) {
    throw new ServiceError(
      "bad_request",
      `Upload-Metadata must not exceed ${resumableLimits.metadataCharsMax} characters`,
    );
  }
  for (const pair of value === null || value === "" ? [] : value.split(",")) {
    const [, key, text = ""] = PAIR.exec(pair.trim()) ?? [];
    if (key === undefined || text.length % 4 !== 0 || pairs.has(key)) {
      throw new ServiceError("bad_request", "Upload-Metadata must contain pairs of a key and a base64 value");
    }
    pairs.set(key, Buffer.from(text, "base64").toString());
  }
  return { filename: pairs.get("filename") || null, filetype: pairs.get("filetype") || null };
}

/** Parses an `Upload-Checksum` header. Throws `bad_request` if it is malformed or uses another algorithm. */
export function uploadChecksum(value: string | null): Checksum | null {
  if (value === null) return null;
  const [, name, digest = ""] = CHECKSUM.exec(value) ?? [];
  const algorithm = checksumAlgorithms.find((known) => known === name);
  if (algorithm === undefined) {
    throw new ServiceError("bad_request", `Upload-Checksum must be one of ${checksumAlgorithms.join(", ")}`);
  }
  return { algorithm, digest: Buffer.from(digest, "base64") };
}
