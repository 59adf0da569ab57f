/** The cards of the board, with votes and pictures. */
import { id, UserError } from "syncline/server";
import { z } from "zod";
import { nameOf, signedIn } from "./people.ts";
import { internalMutation, mutation, query } from "./schema.ts";

const column = z.enum(["good", "bad", "next"]);

/** Returns the newest cards, or those that contain the words of `search`. */
export const list = query({
  args: { search: z.string() },
  handler: async (ctx, { search }) => {
    signedIn(ctx);
    const cards = search === ""
      ? await ctx.db.query("cards").order("desc").take(200)
      : await ctx.db.query("cards").withSearchIndex("by_text", (q) => q.search("text", search)).take(200);
    return await Promise.all(cards.map(async (card) => ({
      ...card,
      author: await nameOf(ctx, card.by),
      picture: card.photo === undefined ? null : await ctx.storage.getUrl(card.photo),
    })));
  },
});

export const add = mutation({
  args: { column, text: z.string().trim().min(1).max(300), photo: id("_storage").optional() },
  handler: (ctx, card) => ctx.db.insert("cards", { ...card, by: signedIn(ctx), voters: [] }),
});

export const vote = mutation({
  args: { card: id("cards"), on: z.boolean() },
  handler: async (ctx, { card, on }) => {
    const user = signedIn(ctx);
    const found = await ctx.db.get(card);
    if (found === null) throw new UserError("gone", "This card was removed");
    const others = found.voters.filter((voter) => voter !== user);
    await ctx.db.patch(card, { voters: on ? [...others, user] : others });
  },
});

export const remove = mutation({
  args: { card: id("cards") },
  handler: async (ctx, { card }) => {
    const user = signedIn(ctx);
    const found = await ctx.db.get(card);
    if (found === null) return;
    if (found.by !== user) throw new UserError("not_yours", "Only its author can remove a card");
    if (found.photo !== undefined) await ctx.storage.delete(found.photo);
    await ctx.db.delete(card);
  },
});

/** Returns an address that accepts one upload. */
export const uploadUrl = mutation({
  args: {},
  handler: async (ctx) => {
    signedIn(ctx);
    return await ctx.storage.generateUploadUrl();
  },
});

/** Adds sample cards: `npm run seed`, while the app runs. */
export const seed = internalMutation({
  args: {},
  handler: async (ctx) => {
    const user = await ctx.db.query("_users").first();
    if (user === null) {
      throw new UserError("no_user", "Sign up in the app first: each card belongs to a user");
    }
    const cards = {
      good: ["The release went out on Tuesday, as planned", "Two people understand the importer now"],
      bad: ["Alerts at night that no one could act on"],
      next: ["Delete alerts without an action"],
    };
    for (const key of column.options) {
      for (const text of cards[key]) {
        await ctx.db.insert("cards", { column: key, text, by: user._id, voters: [] });
      }
    }
    return "Added four cards";
  },
});
