/** Stores and consumes codes and links within a transaction (CO). */
import { z } from "zod";
import { authLimits } from "../limits.ts";
import type { CodeKind } from "../tokens/codes.ts";
import type { AuthDoc, AuthMutationCtx } from "../tables.ts";

export const codeKindSchema: z.ZodType<CodeKind> = z.enum(["verify", "reset", "magic"]);

/** The proof that a client presents: a link token, or an address with a code. Hashes only. */
export const proofSchema = z.union([
  z.object({ tokenHash: z.string() }),
  z.object({ email: z.string(), codeHash: z.string() }),
]);
export type Proof = z.infer<typeof proofSchema>;

/** Hashes of a new code and link token; the plain values never leave main. */
export const newCodeSchema = z.object({
  kind: codeKindSchema,
  email: z.string(),
  codeHash: z.string(),
  tokenHash: z.string(),
  expiresAt: z.number(),
});
export type NewCode = z.infer<typeof newCodeSchema>;

/** Stores a code. Invalidates earlier codes (each would allow five more guesses), not the links of the newest mails. */
export async function storeCode(
  ctx: AuthMutationCtx,
  code: NewCode,
  { changeFor }: { readonly changeFor?: AuthDoc<"_users">["_id"] } = {},
): Promise<void> {
  const older = await codesOf(ctx, code);
  const dropped = older.slice(0, Math.max(0, older.length + 1 - authLimits.liveLinksMax));
  for (const row of dropped) await ctx.db.delete(row._id);
  for (const row of older.slice(dropped.length)) await ctx.db.patch(row._id, { codeHash: undefined });
  await ctx.db.insert("_codes", {
    ...code,
    attemptsLeft: authLimits.codeAttemptsMax,
    ...(changeFor !== undefined && { changeFor }),
  });
}

export interface UseOptions {
  readonly kind: CodeKind;
  readonly now: number;
}

/** Consumes a code or link and deletes its kind's rows. `null` if invalid. The last wrong attempt burns the code. */
export async function useCode(
  ctx: AuthMutationCtx,
  proof: Proof,
  { kind, now }: UseOptions,
): Promise<AuthDoc<"_codes"> | null> {
  const row = "tokenHash" in proof
    ? await ctx.db.query("_codes").withIndex("by_token", (q) => q.eq("tokenHash", proof.tokenHash)).unique()
    : (await codesOf(ctx, { kind, email: proof.email })).find(({ codeHash }) => codeHash !== undefined) ??
      null;
  if (row === null || row.kind !== kind || row.expiresAt <= now) return null;
  if ("codeHash" in proof && row.codeHash !== proof.codeHash) {
    const attemptsLeft = row.attemptsLeft - 1;
    await ctx.db.patch(row._id, { attemptsLeft, ...(attemptsLeft <= 0 && { codeHash: undefined }) });
    return null;
  }
  for (const used of await codesOf(ctx, row)) await ctx.db.delete(used._id);
  return row;
}

/** Returns the rows of a kind and address, oldest first. */
function codesOf(
  ctx: AuthMutationCtx,
  { kind, email }: { readonly kind: CodeKind; readonly email: string },
): Promise<AuthDoc<"_codes">[]> {
  return ctx.db.query("_codes").withIndex("by_target", (q) => q.eq("kind", kind).eq("email", email))
    .collect();
}
