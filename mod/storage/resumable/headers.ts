/** What requests of the tus protocol say in their headers (tus 1.0: core, creation, checksum). */
import { Buffer } from "node:buffer";
import { ServiceError } from "../../errors.ts";
import { resumableLimits } from "../limits.ts";

/** Version of the protocol, the only one there is. */
export const tusVersion = "1.0.0";

/** The type of a body that goes on with an upload. */
export const chunkContentType = "application/offset+octet-stream";

/** Names of the hash functions that clients may send checksums of; the protocol demands sha1. */
export const checksumAlgorithms = ["sha1", "sha256", "md5"] as const;

export type ChecksumAlgorithm = typeof checksumAlgorithms[number];

/** What the bytes of a body must hash to. */
export interface Checksum {
  readonly algorithm: ChecksumAlgorithm;
  readonly digest: Uint8Array;
}

const COUNT = /^(?:0|[1-9]\d{0,14})$/;
const PAIR = /^([\x21-\x2b\x2d-\x7e]+)(?: ([A-Za-z0-9+/]*={0,2}))?$/;
const CHECKSUM = /^([a-z0-9]{1,16}) ([A-Za-z0-9+/]+={0,2})$/;

/** A number of bytes; `null` without the header. Throws `bad_request` for anything else. */
export function byteCount(name: string, value: string | null): number | null {
  if (value === null) return null;
  if (!COUNT.test(value)) throw new ServiceError("bad_request", `${name} must be a number of bytes`);
  return Number(value);
}

/** The file name and type in an `Upload-Metadata` header, `null` each when they are not there or empty. */
export interface UploadMetadata {
  readonly filename: string | null;
  readonly filetype: string | null;
}

/** Throws `bad_request` when the header is malformed, names a key twice or is too long. */
export function uploadMetadata(value: string | null): UploadMetadata {
  const pairs = new Map<string, string>();
  if (value !== null && value.length > resumableLimits.metadataCharsMax) {
    throw new ServiceError(
      "bad_request",
      `Upload-Metadata may have up to ${resumableLimits.metadataCharsMax} characters`,
    );
  }
  for (const pair of value === null || value === "" ? [] : value.split(",")) {
    const [, key, text = ""] = PAIR.exec(pair.trim()) ?? [];
    if (key === undefined || text.length % 4 !== 0 || pairs.has(key)) {
      throw new ServiceError("bad_request", "Upload-Metadata must be pairs of a key and a value in base64");
    }
    pairs.set(key, Buffer.from(text, "base64").toString());
  }
  return { filename: pairs.get("filename") || null, filetype: pairs.get("filetype") || null };
}

/** An `Upload-Checksum` header. Throws `bad_request` when it is malformed or of another hash function. */
export function uploadChecksum(value: string | null): Checksum | null {
  if (value === null) return null;
  const [, name, digest = ""] = CHECKSUM.exec(value) ?? [];
  const algorithm = checksumAlgorithms.find((known) => known === name);
  if (algorithm === undefined) {
    throw new ServiceError("bad_request", `Upload-Checksum must be one of ${checksumAlgorithms.join(", ")}`);
  }
  return { algorithm, digest: Buffer.from(digest, "base64") };
}
