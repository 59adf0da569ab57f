/** An assistant that answers messages beginning with "/ask". Its answer arrives word by word, through a stream. */
import { id } from "syncline/server";
import { z } from "zod";
import { internal } from "./_generated.ts";
import { internalAction, internalMutation } from "./schema.ts";

/** Pause between two words. */
const WORD_MS = 60;

/** The text of the answer is in the stream until `finish` stores it. */
export const begin = internalMutation({
  args: { channel: z.string(), stream: z.string() },
  handler: async (ctx, { channel, stream }) =>
    await ctx.db.insert("messages", { channel, name: "Assistant", body: "", stream }),
});

export const finish = internalMutation({
  args: { message: id("messages"), body: z.string() },
  handler: async (ctx, { message, body }) => await ctx.db.patch(message, { body, stream: undefined }),
});

export const answer = internalAction({
  args: { channel: z.string(), question: z.string() },
  handler: async (ctx, { channel, question }) => {
    const stream = await ctx.streams.create({ store: false });
    const message = await ctx.runMutation(internal.assistant.begin, { channel, stream: stream.id });
    let body = "";
    for (const word of reply(question).split(/(?<= )/)) {
      await new Promise((resolve) => setTimeout(resolve, WORD_MS));
      body += word;
      await stream.write(word);
    }
    await stream.end();
    await ctx.runMutation(internal.assistant.finish, { message, body });
  },
});

/** A language model would answer here. */
function reply(question: string): string {
  return `You asked: “${question}”. I am a part of the example and know no answers, but each word of this one ` +
    "was on your page before the next one was written.";
}
