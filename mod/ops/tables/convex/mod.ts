/** Exports of Convex, for the command that imports them. */
export { ConvexSnapshot, type SnapshotFile, type SnapshotTable } from "./snapshot.ts";
