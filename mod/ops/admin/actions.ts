/** Admin actions that run in the main process, by function path. */
import { z } from "zod";
import type { TableSize } from "../../engine/mod.ts";
import { adminMainAction, type MainAction, unauditedAdminAction } from "../../functions/main_actions.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { ProbeReport } from "../../kit/locations/location_probe.ts";
import { opsLimits } from "../limits.ts";
import { runArgs, runFunction, type RunFunctionOptions } from "./run_function.ts";
import { setArgs, SETTING_CHARS_MAX, type Settings } from "./settings.ts";
import { system } from "./system.ts";
import { whereArgs } from "./where_args.ts";
import type { AdminWork } from "./work.ts";

/** Sizes at a time, in milliseconds since the epoch. */
export interface CachedSizes {
  readonly at: number;
  readonly tables: readonly TableSize[];
}

/** Sizes and exact counts of all tables, cached for a while because they read every page of the database. */
export class TableSizes {
  readonly #calls: SystemCalls;
  readonly #now: () => number;
  #cached: CachedSizes | null = null;
  #loading: Promise<CachedSizes> | null = null;

  constructor({ calls, now }: { readonly calls: SystemCalls; readonly now: () => number }) {
    this.#calls = calls;
    this.#now = now;
  }

  async read(): Promise<CachedSizes> {
    if (this.#cached !== null && this.#now() - this.#cached.at < opsLimits.tableSizesKnownMs) {
      return this.#cached;
    }
    return await (this.#loading ??= this.#ask().finally(() => this.#loading = null));
  }

  async #ask(): Promise<CachedSizes> {
    const tables = await this.#calls.query(system.sizes, {});
    return this.#cached = { at: this.#now(), tables };
  }
}

export interface AdminActionsOptions extends RunFunctionOptions {
  /** `null` for a server without settings. */
  readonly settings: Settings | null;
  /** Throws if the mail cannot be rendered or sent. */
  readonly sendTestMail: (to: string, mail?: MailChoice) => Promise<void>;
  /** Renders a mail with sample values. Throws if it cannot be rendered. */
  readonly previewMail: (mail: MailChoice) => Promise<unknown>;
  readonly providers: () => ActiveProviders;
  /** Tests a provider as configured. `origin` is that of the browser, for the callback address of a server without a public URL. */
  readonly testProvider: (provider: ProviderChoice) => Promise<unknown>;
  /** Tests a bucket with access by flags and settings. */
  readonly testBucket: (location: string) => Promise<ProbeReport>;
  readonly work: AdminWork;
  readonly sizes: TableSizes;
}

/** Identity providers in use. */
export interface ActiveProviders {
  readonly names: readonly string[];
  /** Origin of the callback addresses; `null` if it is that of the browser. */
  readonly publicUrl: string | null;
}

const providerChoice = z.strictObject({
  name: z.string().max(32),
  origin: z.url({ protocol: /^https?$/ }).max(300),
});
type ProviderChoice = z.output<typeof providerChoice>;

/** A kind of mail, optionally with a template to try. */
const mailChoice = z.strictObject({
  kind: z.enum(["verify", "reset", "magic", "change", "device"]),
  text: z.string().max(SETTING_CHARS_MAX).optional(),
});
type MailChoice = z.output<typeof mailChoice>;

export function adminActions(options: AdminActionsOptions): ReadonlyMap<string, MainAction> {
  const { work, sizes, settings } = options;
  return new Map([
    ...settings === null ? [] : [
      [
        "_admin/settings:set",
        unauditedAdminAction(setArgs, ({ changes }, identity) => settings.set(changes, identity)),
      ] as const,
    ],
    ["_admin/data:sizes", unauditedAdminAction(z.strictObject({}), () => sizes.read())],
    [
      "_admin/data:deleteWhere",
      adminMainAction(z.strictObject(whereArgs), async (where, { adminId }) => ({
        workId: await work.deleteDocuments(where, adminId ?? ""),
      })),
    ],
    [
      "_admin/settings:testMail",
      adminMainAction(
        z.strictObject({ to: z.string(), mail: mailChoice.optional() }),
        async ({ to, mail }) => {
          await options.sendTestMail(to, mail);
          return null;
        },
      ),
    ],
    ["_admin/settings:previewMail", unauditedAdminAction(mailChoice, (mail) => options.previewMail(mail))],
    [
      "_admin/settings:providers",
      unauditedAdminAction(z.strictObject({}), () => Promise.resolve(options.providers())),
    ],
    [
      "_admin/settings:testProvider",
      adminMainAction(providerChoice, (provider) => options.testProvider(provider)),
    ],
    [
      "_admin/settings:testBucket",
      adminMainAction(
        z.strictObject({ location: z.string().max(500) }),
        ({ location }) => options.testBucket(location),
      ),
    ],
    ["_admin/functions:run", adminMainAction(runArgs, (args) => runFunction(options, args))],
  ]);
}
