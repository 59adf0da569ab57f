/** Freezes our classes that app code can obtain: functions of the service use them too, and could leak data. */
import * as engine from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";
import * as serverApi from "../../api/mod.ts";
import { CronJobs } from "../../api/cron_jobs.ts";
import { HttpAction, HttpRouter } from "../../api/http_router.ts";
import { DefinedSchema, TableBuilder } from "../../api/schema.ts";
import { AggregateApi } from "../ctx/aggregate_api.ts";
import { AuthApi } from "../ctx/auth_api.ts";
import { DatabaseApi } from "../ctx/database_api.ts";
import { FilterExpression } from "../ctx/filter_expression.ts";
import { ImportApi } from "../ctx/import_api.ts";
import { IndexRangeBuilder, SearchFilterBuilder } from "../ctx/index_range.ts";
import { LineageApi } from "../ctx/lineage_api.ts";
import { LogApi } from "../ctx/log_api.ts";
import { PresenceApi } from "../ctx/presence_api.ts";
import { SchedulerApi } from "../ctx/scheduler_api.ts";
import { StorageActionsApi, StorageReaderApi, StorageWriterApi } from "../ctx/storage_api.ts";
import { StreamsApi, StreamWriterApi } from "../ctx/streams_api.ts";
import { TableQueryApi } from "../ctx/table_query.ts";
import { MutationContext, QueryContext, SystemMutationContext } from "../ctx/transaction_ctx.ts";
import { VectorFilter } from "../ctx/vector_filter.ts";
import { CalledFunctionError, RefusedCallError } from "../runs/call_errors.ts";
import { NotJsonError } from "../runs/json_text.ts";
import { ActionContext } from "../runs/run_action.ts";

const { create, freeze, getOwnPropertyDescriptor } = Object;
const { ownKeys } = Reflect;

const classes: readonly object[] = [
  ...[QueryContext, MutationContext, SystemMutationContext, ActionContext],
  ...[AggregateApi, AuthApi, DatabaseApi, ImportApi, LineageApi, LogApi, SchedulerApi, TableQueryApi],
  ...[StorageReaderApi, StorageWriterApi, StorageActionsApi, PresenceApi, StreamsApi, StreamWriterApi],
  ...[FilterExpression, IndexRangeBuilder, SearchFilterBuilder, VectorFilter],
  ...[CronJobs, DefinedSchema, HttpAction, HttpRouter, TableBuilder],
  ...[CalledFunctionError, NotJsonError, RefusedCallError, UserError],
];

/** Called once, before app code is loaded. */
export function freezeSharedClasses(): void {
  for (const one of classes) freezeFunction(one);
  for (const module of [serverApi, engine] as readonly object[]) {
    for (const value of Object.values(module)) if (typeof value === "function") freezeFunction(value);
  }
}

function freezeFunction(made: object): void {
  freezeMembers(made);
  freeze(made);
}

function freezeMembers(object: object): void {
  for (const key of ownKeys(object)) {
    const { value, get, set } = getOwnPropertyDescriptor(object, key) ?? {};
    for (const member of [value, get, set]) {
      if (Object.isFrozen(member)) continue;
      // `prototype` of a class or generator function.
      if (typeof member === "function") {
        freezeFunction(member);
      } else if (key === "prototype") {
        freeze(member);
        freezeMembers(member as object);
        // Restores the engine's fast property layout.
        create(member as object);
      }
    }
  }
}
