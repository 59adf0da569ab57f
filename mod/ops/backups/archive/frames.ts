/**
 * Outer layer of an archive: independent zstd frames with checksums. The platform's streaming decoder aborts the process on
 * damaged data and accepts truncated streams. Therefore frames are small, located by their block lengths, and unpacked one at
 * a time. For other programs the file is a regular zstd stream.
 *
 * The last frame is a trailer, which zstd skips: the SHA-256 of all preceding bytes. It detects any changed byte, even one that
 * does not affect the contents, and truncation.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { opsLimits } from "../../limits.ts";

/** The archive is damaged, truncated, not a backup, or of a newer format. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** The disk lacks space for the unpacked archive. */
export class UnpackSpaceError extends Error {
  override readonly name = "UnpackSpaceError";
  readonly code = "disk_full";
}

const FRAME_BYTES = opsLimits.archiveFrameBytes;
/** Upper bound of a compressed frame, far above zstd's overhead for incompressible data. */
const PACKED_BYTES_MAX = FRAME_BYTES + 64 * 1024;

const MAGIC = 0xfd2fb528;
/** Header bytes after the magic number in all our frames: checksum, no dictionary, 1 MiB window. */
const DESCRIPTORS = [0x04, (Math.log2(FRAME_BYTES) - 10) << 3] as const;
const HEADER_BYTES = 6;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
const BLOCK = { raw: 0, runLength: 1, compressed: 2, reserved: 3 } as const;

/** Start of the trailer: magic number of a skippable frame, and its length. */
const TRAILER = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 32, 0, 0, 0]);
const TRAILER_BYTES = TRAILER.length + 32;

const packing = {
  params: {
    [constants.ZSTD_c_compressionLevel]: 3,
    [constants.ZSTD_c_checksumFlag]: 1,
    [constants.ZSTD_c_windowLog]: Math.log2(FRAME_BYTES),
  },
};
const unpacking = {
  maxOutputLength: FRAME_BYTES,
  params: { [constants.ZSTD_d_windowLogMax]: Math.log2(FRAME_BYTES) },
};

/** Compresses bytes into frames followed by the trailer. */
export async function* packFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(FRAME_BYTES);
  const hash = createHash("sha256");
  let filled = 0;
  const pack = (): Uint8Array => {
    const packed = zstdCompressSync(buffer.subarray(0, filled), packing);
    filled = 0;
    // The platform may append an empty frame.
    const frame = packed.subarray(0, frameLength(packed) ?? packed.length);
    hash.update(frame);
    return frame;
  };
  for await (const chunk of source) {
    for (let taken = 0; taken < chunk.length;) {
      const part = chunk.subarray(taken, taken + FRAME_BYTES - filled);
      buffer.set(part, filled);
      filled += part.length;
      taken += part.length;
      if (filled === FRAME_BYTES) yield pack();
    }
  }
  if (filled > 0) yield pack();
  yield Buffer.concat([TRAILER, hash.digest()]);
}

/** Unpacks frames as they arrive; only the last one proves integrity. Throws an `ArchiveError`. */
export async function* unpackFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(2 * PACKED_BYTES_MAX);
  const hash = createHash("sha256");
  let filled = 0;
  let complete = false;
  for await (const chunk of source) {
    for (let taken = 0; taken < chunk.length;) {
      const part = chunk.subarray(taken, taken + buffer.length - filled);
      buffer.set(part, filled);
      filled += part.length;
      taken += part.length;
      let at = 0;
      while (at < filled) {
        if (complete) throw new ArchiveError("The archive is damaged: there is data after its end");
        const rest = buffer.subarray(at, filled);
        const trailer = trailerAt(rest);
        const length = trailer === null ? frameLength(rest) : TRAILER_BYTES;
        if (length === null || length > rest.length) break;
        if (trailer !== null) complete = checkTrailer(trailer, hash.digest());
        else {
          const frame = rest.subarray(0, length);
          hash.update(frame);
          yield unpacked(frame);
        }
        at += length;
      }
      buffer.copyWithin(0, at, filled);
      filled -= at;
    }
  }
  if (!complete) throw new ArchiveError("The archive is truncated");
}

/** Returns the trailer, possibly incomplete, that `bytes` starts with; `null` if it is another frame. */
function trailerAt(bytes: Uint8Array): Uint8Array | null {
  const begun = bytes.length >= TRAILER.length && TRAILER.equals(bytes.subarray(0, TRAILER.length));
  return begun ? bytes.subarray(0, TRAILER_BYTES) : null;
}

function checkTrailer(trailer: Uint8Array, digest: Uint8Array): true {
  if (!Buffer.concat([TRAILER, digest]).equals(trailer)) {
    throw new ArchiveError("The archive is damaged: wrong overall checksum");
  }
  return true;
}

function unpacked(frame: Uint8Array): Uint8Array {
  try {
    return zstdDecompressSync(frame, unpacking);
  } catch (cause) {
    throw new ArchiveError("The archive is damaged: cannot decompress it", { cause });
  }
}

/** Length of the frame at the start of `bytes`; `null` if it is incomplete. */
function frameLength(bytes: Uint8Array): number | null {
  if (bytes.length < TRAILER.length) return null;
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.readUInt32LE(0) !== MAGIC) {
    throw new ArchiveError(
      "Not a backup archive, or a damaged one: expected zstd data",
    );
  }
  if (view[4] !== DESCRIPTORS[0] || view[5] !== DESCRIPTORS[1]) {
    throw new ArchiveError("Not a backup archive, or a damaged one: unexpected zstd parameters");
  }
  let at = HEADER_BYTES;
  for (let last = false; !last;) {
    if (at + BLOCK_HEADER_BYTES > view.length) return unlessTooLong(at);
    const header = view.readUIntLE(at, BLOCK_HEADER_BYTES);
    const type = (header >> 1) & 3;
    if (type === BLOCK.reserved) throw new ArchiveError("The archive is damaged: cannot decompress it");
    last = (header & 1) === 1;
    at += BLOCK_HEADER_BYTES + (type === BLOCK.runLength ? 1 : header >> 3);
  }
  at += CHECKSUM_BYTES;
  return at <= view.length ? at : unlessTooLong(at);
}

/** Reports an incomplete frame, unless it would exceed the maximum length. */
function unlessTooLong(bytes: number): null {
  if (bytes > PACKED_BYTES_MAX) throw new ArchiveError("The archive is damaged: cannot decompress it");
  return null;
}
