/** Functions that a test server adds to the app: callbacks of a test, and accounts created without passwords. */
import { z } from "zod";
import {
  insertUser,
  internalMutation as accountMutation,
  setProfile,
  userCreated,
} from "../auth/isolate_functions/mod.ts";
import { functionSpec, internalMutation } from "../functions/api/service.ts";
import type { LoadedFunction } from "../functions/isolate/mod.ts";

/** Paths of these functions. */
export const testPaths = {
  run: "_testing:run",
  createUser: "_testing:createUser",
  createAdmin: "_testing:createAdmin",
};

type Work = (ctx: unknown) => unknown;

/** Callbacks waiting for their run, by number. */
const works = new Map<number, Work>();
let workCount = 0;

/** Registers a callback for one run of {@linkcode testPaths.run}. Returns its number. */
export function registerWork(work: Work): number {
  works.set(++workCount, work);
  return workCount;
}

const run = internalMutation({
  args: { work: z.number() },
  handler: async (ctx, { work }) => {
    const found = works.get(work);
    works.delete(work);
    return await found?.(ctx);
  },
});

/**
 * Returns the user with this address, or creates one; without an address always creates one. A new user is created as if by
 * password sign-up: with the app's profile, and `onUserCreated` is called.
 */
const createUser = accountMutation({
  args: {
    email: z.string().optional(),
    name: z.string().optional(),
    emailVerified: z.boolean(),
    profile: z.record(z.string(), z.unknown()).optional(),
  },
  handler: async (ctx, { profile, ...args }) => {
    if (args.email !== undefined) {
      const { email } = args;
      const known = await ctx.db.query("_users").withIndex("by_email", (q) => q.eq("email", email)).first();
      if (known !== null) return known._id;
    }
    const user = await insertUser(ctx, args);
    if (profile !== undefined) await setProfile(ctx, user, profile);
    await userCreated(ctx, { user, by: "password" });
    return user;
  },
});

const createAdmin = accountMutation({
  args: { email: z.string() },
  handler: async (ctx, { email }) => {
    const known = await ctx.db.query("_admins").withIndex("by_email", (q) => q.eq("email", email)).first();
    return known?._id ?? await ctx.db.insert("_admins", { email });
  },
});

/** Registers them like the loader does. Callbacks of a test only have the rights of the app. */
export function testFunctions(): LoadedFunction[] {
  return [
    loaded(testPaths.run, { declared: run, system: false }),
    loaded(testPaths.createUser, { declared: createUser, system: true }),
    loaded(testPaths.createAdmin, { declared: createAdmin, system: true }),
  ];
}

function loaded(
  udfPath: string,
  { declared, system }: { readonly declared: unknown; readonly system: boolean },
): LoadedFunction {
  const spec = functionSpec(declared);
  if (spec === undefined) throw new TypeError(`${udfPath} is not a function`);
  return { udfPath, spec, system };
}
