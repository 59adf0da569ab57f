/** Messages between the main process and the process of a target, as lines of JSON. */
import type { RestoreFailureCause } from "../../backups/restore/mod.ts";
import type { DocumentHistory } from "../document_history.ts";
import type { RestorePoint } from "../history.ts";
import type { FollowerUpdate, FollowerUpdateOptions } from "../follow/update_follower.ts";
import type { LogPosition } from "../follow/follower.ts";
import type { Claim } from "../replica_target.ts";
import type { PointProgress, StagedPoint } from "../restore_point.ts";
import type { JournalRestart, MadeSnapshot } from "../shipper.ts";
import type { GenerationReport, ShippingStatus } from "../status.ts";
import type { LocationFault, ObjectLocation } from "../../../kit/locations/object_store.ts";

/** Begins the work of a process; its first message. */
export type Begin =
  | {
    readonly type: "Begin";
    readonly work: "ship";
    readonly dataDir: string;
    readonly target: ObjectLocation;
    readonly claim: Claim;
    readonly snapshotEveryMs: number;
    readonly keepMs: number;
  }
  | {
    readonly type: "Begin";
    readonly work: "stage";
    readonly dataDir: string;
    readonly target: ObjectLocation;
    readonly localFiles: boolean;
    readonly point: RestorePoint;
    /** Path for the database, which is not staged then. */
    readonly databaseTo?: string;
  }
  | {
    readonly type: "Begin";
    readonly work: "update";
    readonly dataDir: string;
    readonly target: ObjectLocation;
    readonly step: FollowerUpdateOptions["step"];
  }
  | {
    readonly type: "Begin";
    readonly work: "fetch";
    readonly dataDir: string;
    readonly target: ObjectLocation;
    readonly name: string;
    /** Content of the follower mark of the database. */
    readonly source: string;
  }
  | {
    readonly type: "Begin";
    readonly work: "history";
    readonly dataDir: string;
    readonly target: ObjectLocation;
    /** ID of the document. */
    readonly id: string;
    /** Path in the data folder for an unpacked snapshot, which is removed afterwards. */
    readonly folder: string;
  }
  | {
    readonly type: "Begin";
    readonly work: "follow";
    readonly dataDir: string;
    readonly target: ObjectLocation;
    readonly everyMs: number;
  };

export type ToProcess =
  | Begin
  /** New commits are ready to ship. */
  | { readonly type: "Ship" }
  /** Requests a snapshot. */
  | { readonly type: "WantSnapshot" }
  | { readonly type: "Snapshot"; readonly made: MadeSnapshot }
  | { readonly type: "NoSnapshot"; readonly message: string }
  /** Requests the restorable generations. */
  | { readonly type: "Report"; readonly id: number }
  /** Requests the rows after a position; sent after the previous answer. */
  | { readonly type: "ReadLog"; readonly after: LogPosition };

export type FromProcess =
  /** Result of the first access to the target. */
  | {
    readonly type: "Opened";
    readonly fault: null | { readonly fault: LocationFault; readonly message: string };
  }
  | { readonly type: "Confirmed"; readonly generation: string; readonly seq: number }
  | ({ readonly type: "Restart" } & JournalRestart)
  | { readonly type: "SnapshotWanted" }
  /** The file of a snapshot is no longer needed. */
  | { readonly type: "SnapshotTaken" }
  | { readonly type: "Status"; readonly status: ShippingStatus }
  | { readonly type: "Report"; readonly id: number; readonly generations: readonly GenerationReport[] }
  | { readonly type: "Progress"; readonly progress: PointProgress }
  /** A requested row, or a piece of its body. With `more`, another piece follows. */
  | {
    readonly type: "LogRow";
    readonly row: readonly [seq: number, tsBefore: number, ts: number, at: number, sum: string];
    readonly piece: string;
    readonly more: boolean;
  }
  /** Sent after the available rows. */
  | { readonly type: "LogBatch"; readonly newestTs: number; readonly checkedAt: number }
  | { readonly type: "LogFault"; readonly fault: LocationFault | "gap"; readonly message: string }
  | {
    readonly type: "Updated";
    readonly result:
      | { readonly ok: true; readonly update: FollowerUpdate }
      | { readonly ok: false; readonly fault: LocationFault | null; readonly message: string };
  }
  | {
    readonly type: "History";
    readonly result:
      | { readonly ok: true; readonly history: DocumentHistory }
      | { readonly ok: false; readonly fault: LocationFault | null; readonly message: string };
  }
  | {
    readonly type: "Staged";
    readonly result:
      | { readonly ok: true; readonly staged: StagedPoint }
      | {
        readonly ok: false;
        readonly fault: LocationFault | RestoreFailureCause | null;
        readonly message: string;
      };
  };
