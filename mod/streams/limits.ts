/** Limits of streams. Names end with the unit, as in `mod/limits.ts`. */

const KiB = 1024;
const MiB = 1024 * KiB;

export const streamLimits = {
  /** Content of one stream. A longer one fails. */
  streamBytesMax: 8 * MiB,
  /** Contents of all streams in memory. Ended streams are dropped first; then further chunks are refused. */
  totalBytesMax: 128 * MiB,
  /** Streams in memory. */
  streamsMax: 10_000,
  /** Streams of one action that are open at once. */
  perActionMax: 64,
  /** Bytes of one chunk. Longer ones are sent in pieces. */
  chunkBytesMax: 512 * KiB,
  /** How long an ended stream can be read. */
  keptMs: 60_000,
  /** Interval of the check for streams to drop. */
  checkMs: 5_000,
  /** Responses that read streams at once. Further ones are refused. */
  readersMax: 20_000,
  /** Bytes that a response takes at once. */
  readBytesMax: 64 * KiB,
  /** Chunks wait for a millisecond per this many readers, and reach them together. */
  readersPerMs: 50,
  /** Memory of a new stream. It doubles as needed. */
  firstBytes: 1 * KiB,
  /** Content type and file name. */
  nameCharsMax: 255,
  /** Streams of the leader that a follower reads at once. */
  followedMax: 128,
  /** Pause before a follower continues with a stream after a lost connection, and the number of such attempts. */
  followAgainMs: 250,
  followTriesMax: 8,
} as const;
