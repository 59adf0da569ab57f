/** The audit log as main writes it (`isolate_functions/audit.ts` holds the rows), and how it is kept from growing for ever. */
import { z } from "zod";
import type { FunctionCall } from "../../functions/host_port.ts";
import { internalMainAction, type MainAction } from "../../functions/main_actions.ts";
import type { Outcome } from "../../functions/outcome.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { opsLimits } from "../limits.ts";
import { system } from "./system.ts";

/** A setting that was changed. Secrets are told as set or not set. */
export interface SettingChange {
  readonly setting: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** What an administrator did. */
export interface AuditEntry {
  readonly admin: string;
  readonly session: string | null;
  readonly action: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** `ok`, or the code of the error. */
  readonly outcome: string;
  /** Where the request came from; otherwise what the session says. */
  readonly address?: string;
  readonly changes?: readonly SettingChange[];
}

export const AUDIT_CLEAN_PATH = "_system/admin:cleanAllAudit";

export class AuditLog {
  readonly #calls: SystemCalls;
  readonly #log: Log;
  readonly #now: () => number;

  constructor(
    { calls, log, now = Date.now }: {
      readonly calls: SystemCalls;
      readonly log: Log;
      readonly now?: () => number;
    },
  ) {
    this.#calls = calls;
    this.#log = log;
    this.#now = now;
  }

  /** Never rejects: what was done is done, and the server's log says what could not be noted. */
  async note({ changes, ...entry }: AuditEntry): Promise<void> {
    try {
      await this.#calls.mutate(system.note, {
        ...entry,
        ...(changes !== undefined && { changes: [...changes] }),
      });
    } catch (error) {
      const { admin, action } = entry;
      this.#log("error", "The audit log could not be written", { admin, action, error });
    }
  }

  /** Notes an action that main ran for an administrator. Never rejects. */
  async noteAction({ udfPath, args, identity }: FunctionCall, outcome: Outcome): Promise<void> {
    await this.note({
      admin: identity.adminId ?? "",
      session: identity.sessionId,
      action: udfPath,
      args,
      outcome: outcome.ok ? "ok" : outcome.error.data?.code ?? "failed",
    });
  }

  /** What deletes old rows, by path: each step is a mutation of its own. */
  get actions(): ReadonlyMap<string, MainAction> {
    return new Map([[
      AUDIT_CLEAN_PATH,
      internalMainAction(z.strictObject({}), async () => {
        const before = this.#now() - opsLimits.auditKeptMs;
        while (await this.#calls.mutate(system.cleanAudit, { before }));
      }),
    ]]);
  }
}
