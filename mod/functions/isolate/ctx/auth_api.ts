/** `ctx.auth`. Records how much of the identity a call reads. */
import type { Auth, CallerIdentity } from "../../api/context.ts";
import type { Id } from "../../api/values.ts";
import type { Call } from "../runs/call.ts";
import { type ContextUser, failedAt } from "../runs/unhandled_failures.ts";

/** Runs a query of the service: in the caller's transaction or, from an action, through main. */
type RunQuery = (name: string, args: Record<string, unknown>) => Promise<unknown>;

export class AuthApi implements Auth {
  readonly #call: Call;
  readonly #query: RunQuery;
  readonly #asker: ContextUser;
  readonly #now: () => number;

  /** `asker` is the function that uses it, `now` its clock. */
  constructor(
    call: Call,
    { query, asker, now }: {
      readonly query: RunQuery;
      readonly asker: ContextUser;
      readonly now: () => number;
    },
  ) {
    this.#call = call;
    this.#query = query;
    this.#asker = asker;
    this.#now = now;
  }

  userId(): Id<"_users"> | null {
    return this.#principal().userId as Id<"_users"> | null;
  }

  adminId(): Id<"_admins"> | null {
    return this.#principal().adminId as Id<"_admins"> | null;
  }

  sessionId(): string | null {
    this.#call.scope = "session";
    const { key, sessionId } = this.#call.identity;
    return key === undefined ? sessionId : null;
  }

  keyId(): string | null {
    this.#call.scope = "session";
    const { key, sessionId } = this.#call.identity;
    return key === undefined ? null : sessionId;
  }

  identity(): CallerIdentity | null {
    const { principal, userId, adminId, claims = {} } = this.#principal();
    if (principal === null) return null;
    const call = this.#call;
    return {
      userId: userId as Id<"_users"> | null,
      adminId: adminId as Id<"_admins"> | null,
      /** Claims differ between tokens of one principal, so reading them limits sharing to the session. */
      get claims() {
        call.scope = "session";
        return structuredClone(claims);
      },
    };
  }

  async isAnonymous(): Promise<boolean> {
    try {
      return await this.#query("_ctx/auth:isAnonymous", {}) as boolean;
    } catch (error) {
      throw failedAt(this.#asker, "ctx.auth.isAnonymous()", error);
    }
  }

  async requireFactor({ withinMinutes }: { readonly withinMinutes?: number } = {}): Promise<void> {
    const checking = this.#checkFactor(withinMinutes);
    const { checks } = this.#asker;
    const settled = checking.catch(() => {});
    this.#asker.checks = checks === null ? settled : Promise.all([checks, settled]);
    await checking;
  }

  async #checkFactor(withinMinutes: number | undefined): Promise<void> {
    try {
      if (withinMinutes !== undefined && !(typeof withinMinutes === "number" && withinMinutes > 0)) {
        throw new RangeError(`requireFactor() needs withinMinutes above 0, not ${String(withinMinutes)}`);
      }
      // Without a time the clock is not read, so that results can be shared and cached.
      const within = withinMinutes === undefined ? null : { minutes: withinMinutes, now: this.#now() };
      await this.#query("_ctx/auth:requireFactor", { within });
    } catch (error) {
      throw failedAt(this.#asker, "ctx.auth.requireFactor()", error);
    }
  }

  #principal(): Call["identity"] {
    if (this.#call.scope === "nothing") this.#call.scope = "principal";
    return this.#call.identity;
  }
}
