/** What administrators see and change through system functions, as this server is put together. */
import { SystemCalls } from "../../functions/system_calls.ts";
import { adminActions, AdminWork, AUDIT_CLEAN_PATH, AuditLog, TableSizes } from "../../ops/admin/mod.ts";
import { serviceCron } from "../../scheduler/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";

export interface SteeringFeature extends Feature {
  readonly audit: AuditLog;
  readonly sizes: TableSizes;
}

/** When the server stops, long work of administrators ends after its step. */
export function startSteering({ host, port, log }: FeatureContext): SteeringFeature {
  const calls = new SystemCalls(port);
  const audit = new AuditLog({ calls, log });
  const work = new AdminWork({ calls, now: Date.now, log });
  const sizes = new TableSizes({ calls, now: Date.now });
  return {
    audit,
    sizes,
    actions: new Map([...adminActions({ host, calls, work, sizes }), ...audit.actions]),
    crons: [
      serviceCron(
        "svc-clean-audit",
        { kind: "expression", expression: "41 4 * * *" },
        { path: AUDIT_CLEAN_PATH, kind: "action" },
      ),
    ],
    start: () => work.start(),
    stop: () => work[Symbol.asyncDispose](),
  };
}
