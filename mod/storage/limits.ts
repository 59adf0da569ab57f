/** Limits of file storage. Units are at the end of the names, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Limits of stored files, including those the contract leaves open. */
export const storageLimits = {
  /** IDs reserved at once for imported files. */
  importedAtOnceMax: 1_000,
  /** Default maximum upload size. */
  uploadBytesMax: 100 * MiB,
  /** Lifetime of an upload URL. */
  uploadUrlMs: 3_600_000,
  /** How long used upload URLs are remembered, to distinguish them from expired ones. */
  usedUploadKeptMs: 86_400_000,
  /** An upload fails if it sends no bytes for this long. */
  uploadStallMs: 60_000,
  /** Maximum number of concurrent uploads. */
  uploadsAtOnceMax: 1_000,
  /** Memory for bodies being read, provided each gets at least three times `uploadBufferBytesMin`. */
  uploadBuffersBytes: 64 * MiB,
  /** Read buffer of a body. Twice as many bytes may be waiting for the disk. */
  uploadBufferBytesMax: 256 * KiB,
  /** Read buffer when many bodies are read at once. */
  uploadBufferBytesMin: 64 * KiB,
  /** Uploads per client address: `burst` at once, then `perMinute`. */
  uploadsPerClient: { burst: 60, perMinute: 120 },
  /** Client addresses tracked by the rate limit; the least recently used is evicted. */
  rateLimitKeysMax: 50_000,
  /** Maximum length of a file name; longer names are truncated. */
  nameCharsMax: 255,
  /** Maximum length of a content type; longer ones are rejected. */
  contentTypeCharsMax: 255,
  /** Maximum number of ranges per request; with more, the header is ignored. */
  rangesMax: 16,
  /** Cache lifetime of a file in browsers. */
  cacheSeconds: 2_592_000,
  /** Age at which unfinished multipart uploads are aborted in a bucket used by several servers in turn. */
  s3UnfinishedKeepMs: 86_400_000,
  /** Maximum size of files cached in memory. */
  smallFileBytesMax: 32 * KiB,
  /** Maximum size of thumbnails cached in memory. */
  thumbnailKeptBytesMax: 256 * KiB,
  /** Documents, and their characters, read by one query while scanning for references. */
  documentsWalkedAtOnce: 2_000,
  charsWalkedAtOnce: 4 * MiB,
  /** Maximum number of references or orphans returned. */
  referencesReturnedMax: 1_000,
  /** Maximum number of referenced files tracked while searching for orphans, some 100 MB. */
  referencedFilesMax: 1_000_000,
  /** Files read for one page of an administrator's search. */
  filesReadMax: 4_000,
  /** Size of the memory cache of files and thumbnails; responses built from them take at most as much again. */
  smallFilesKeptBytes: 16 * MiB,
  /** Files whose metadata is cached. */
  cachedFilesMax: 20_000,
  /** Contents removed between two commits that delete their rows. */
  removedAtOnceMax: 100,
  /** Blobs checked by one query of the orphan sweep. */
  sweptAtOnceMax: 500,
  /** Age at which a blob without a document is an orphan. */
  orphanAgeMs: 3_600_000,
  /** Interval of the orphan sweep. */
  sweepIntervalMs: 6 * 3_600_000,
  /** Maximum number of files that actions store concurrently. */
  actionUploadsMax: 256,
  /** Maximum edge of a thumbnail, in pixels. */
  thumbnailEdgeMax: 1_024,
  /** Maximum size of an image to make thumbnails of, in bytes. */
  thumbnailSourceBytesMax: 32 * MiB,
  /** Maximum size of an image to make thumbnails of, in pixels. */
  thumbnailSourcePixelsMax: 40_000_000,
  /** Thumbnails made concurrently. Each may hold a decoded image in memory. */
  thumbnailsAtOnceMax: 2,
  /** Maximum number of queued thumbnails. */
  thumbnailsQueuedMax: 256,
  /** Images remembered as undecodable, so that they are not retried. */
  hopelessImagesMax: 10_000,
  /** The image process is killed if a thumbnail takes longer. */
  thumbnailMs: 30_000,
  /** Idle time after which the image process exits. */
  thumbnailIdleMs: 60_000,
  /** Private writable memory of the image process, in addition to the runtime's reservation. */
  thumbnailDataMiB: 1_024,
} as const;

/** Limits of resumable uploads (tus). */
export const resumableLimits = {
  /** How long an unfinished upload can be resumed, even after its URL has expired. */
  keptMs: 86_400_000,
  /** Maximum number of unfinished uploads. */
  uploadsMax: 10_000,
  /** Disk quota of unfinished uploads, in files of the maximum size. */
  spaceInLargestFiles: 100,
  /** Bytes received between two saves of an upload's progress; at most these are lost in a crash. */
  checkpointBytes: 16 * MiB,
  /** Requests waiting for an earlier request of the same upload; more are rejected. */
  waitingMax: 8,
  /** Maximum length of the `Upload-Metadata` header. */
  metadataCharsMax: 4_096,
  /** Requests that resume uploads, per client address. */
  requestsPerClient: { burst: 600, perMinute: 1_200 },
} as const;
