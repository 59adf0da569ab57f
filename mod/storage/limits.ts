/** The bounds of files. Units stand last in the names, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of stored files; bounds that the contract leaves open are chosen here. */
export const storageLimits = {
  /** Files whose ids are made at once when files come from elsewhere. */
  importedAtOnceMax: 1_000,
  /** Largest upload unless the operator sets another. */
  uploadBytesMax: 100 * MiB,
  /** An upload URL can be used this long after it was made. */
  uploadUrlMs: 3_600_000,
  /** A used upload URL is remembered this long, to be told from one that has expired. */
  usedUploadKeptMs: 86_400_000,
  /** An upload that sends nothing for this long has failed. */
  uploadStallMs: 60_000,
  /** Uploads under way at once; one more is refused. */
  uploadsAtOnceMax: 1_000,
  /** Memory for the bodies being read, as long as that leaves each three times `uploadBufferBytesMin`. */
  uploadBuffersBytes: 64 * MiB,
  /** Bytes of a body read at once; twice as many are being written. */
  uploadBufferBytesMax: 256 * KiB,
  /** The same when many bodies are read at once. */
  uploadBufferBytesMin: 64 * KiB,
  /** Bytes of a new file after which the disk is told to begin writing, so that little is left to do at its end. */
  earlySyncBytes: 8 * MiB,
  /** Uploads from one client address: `burst` at once, then `perMinute`. */
  uploadsPerClient: { burst: 60, perMinute: 120 },
  /** Clients whose uploads are counted; the one unused for longest gives way. */
  rateLimitKeysMax: 50_000,
  /** Longest file name; the rest is cut off. */
  nameCharsMax: 255,
  /** Longest content type; a longer one is refused. */
  contentTypeCharsMax: 255,
  /** Ranges in one request; with more the header is ignored. */
  rangesMax: 16,
  /** How long a browser may keep a file. */
  cacheSeconds: 2_592_000,
  /** Bytes of a file sent to a bucket at once; S3 takes no smaller parts. */
  s3PartBytes: 5 * MiB,
  /** Where several servers write to a bucket one after the other, an upload that was begun so long ago and has not ended is ended. */
  s3UnfinishedKeepMs: 86_400_000,
  /** Files up to this size are kept in memory once they were read. */
  smallFileBytesMax: 32 * KiB,
  /** Thumbnails up to this size are kept in memory once they were read. */
  thumbnailKeptBytesMax: 256 * KiB,
  /** Documents, and characters of them, looked at in one query of a walk that looks for files they name. */
  documentsWalkedAtOnce: 2_000,
  charsWalkedAtOnce: 4 * MiB,
  /** References to a file, or files nobody names, that are told at once. */
  referencesToldMax: 1_000,
  /** Files named by documents that are kept in mind while those that nobody names are looked for: some 100 MB. */
  namedFilesMax: 1_000_000,
  /** Files looked at for one page of those an administrator looks for. */
  filesLookedAtMax: 4_000,
  /** Bytes of such files and thumbnails kept, and at most as many again in answers made of them. */
  smallFilesKeptBytes: 16 * MiB,
  /** Bytes of a file read from disk at once. */
  readChunkBytes: 256 * KiB,
  /** Files whose facts are kept in memory to answer reads without a look-up. */
  cachedFilesMax: 20_000,
  /** Files whose contents are removed between two commits that forget them. */
  removedAtOnceMax: 100,
  /** Blobs looked up in one query of the orphan sweep. */
  sweptAtOnceMax: 500,
  /** A blob without a document is an orphan once it is this old. */
  orphanAgeMs: 3_600_000,
  /** Time between two sweeps of orphans. */
  sweepIntervalMs: 6 * 3_600_000,
  /** Files that actions are storing at once; one more is refused. */
  actionUploadsMax: 256,
  /** Longest edge of a thumbnail, in pixels. */
  thumbnailEdgeMax: 1_024,
  /** Largest image a thumbnail is made of, in bytes. */
  thumbnailSourceBytesMax: 32 * MiB,
  /** Largest image a thumbnail is made of, in pixels. */
  thumbnailSourcePixelsMax: 40_000_000,
  /** Thumbnails being made at once: each may hold a decoded image. */
  thumbnailsAtOnceMax: 2,
  /** Thumbnails waiting to be made; one more is refused. */
  thumbnailsQueuedMax: 256,
  /** Images of which no thumbnail can be made that are remembered, so that they are not tried again and again. */
  hopelessImagesMax: 10_000,
  /** A thumbnail that takes longer ends the process that makes it. */
  thumbnailMs: 30_000,
  /** The process that makes thumbnails ends when it had nothing to do for this long. */
  thumbnailIdleMs: 60_000,
  /** Private writable memory of that process, above what the runtime itself reserves. */
  thumbnailDataMiB: 1_024,
} as const;

/** Uploads in pieces (tus). */
export const resumableLimits = {
  /** An upload that was begun can be gone on with for this long, also after its URL has expired. */
  keptMs: 86_400_000,
  /** Unfinished uploads at once; one more is refused. */
  uploadsMax: 10_000,
  /** Bytes of all unfinished uploads on disk, in files of the largest size. */
  spaceInLargestFiles: 100,
  /** Bytes received between two notes on disk of how far an upload has come: at most these are lost with the server. */
  checkpointBytes: 16 * MiB,
  /** Requests for one upload that wait for the one before them to end; one more is refused. */
  waitingMax: 8,
  /** Longest `Upload-Metadata` header. */
  metadataCharsMax: 4_096,
  /** Requests that go on with uploads, from one client address. */
  requestsPerClient: { burst: 600, perMinute: 1_200 },
} as const;
