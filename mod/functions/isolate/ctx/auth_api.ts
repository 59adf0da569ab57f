/** `ctx.auth`. Records how much of the identity a call reads. */
import type { Auth, CallerIdentity } from "../../api/context.ts";
import type { Id } from "../../api/values.ts";
import type { Call } from "../runs/call.ts";

export class AuthApi implements Auth {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  userId(): Id<"_users"> | null {
    return this.#principal().userId as Id<"_users"> | null;
  }

  adminId(): Id<"_admins"> | null {
    return this.#principal().adminId as Id<"_admins"> | null;
  }

  sessionId(): string | null {
    this.#call.scope = "session";
    return this.#call.identity.sessionId;
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

  #principal(): Call["identity"] {
    if (this.#call.scope === "nothing") this.#call.scope = "principal";
    return this.#call.identity;
  }
}
