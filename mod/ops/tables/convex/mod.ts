/** Reads Convex exports. */
export { ConvexSnapshot, type SnapshotFile, type SnapshotTable } from "./snapshot.ts";
