/** An app whose action writes words to a stream, and a client that follows it. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { readText, StreamError } from "../../mod/client/streams/mod.ts";
import { until } from "../support/waiting.ts";

export const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ answers: defineTable({ stream: z.string(), released: z.boolean(), file: z.string().nullable() }) });
`,
  "answers.ts": `
import { untypedAction, untypedInternalMutation, untypedMutation, untypedQuery } from "syncline/server";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const begin = untypedInternalMutation({
  handler: (ctx, { stream }) => ctx.db.insert("answers", { stream, released: false, file: null }),
});
export const finish = untypedInternalMutation({ handler: (ctx, { answer, file }) => ctx.db.patch(answer, { file }) });
export const list = untypedQuery({ handler: (ctx) => ctx.db.query("answers").collect() });
export const release = untypedMutation({ handler: async (ctx, { stream }) => {
  const answers = await ctx.db.query("answers").collect();
  await ctx.db.patch(answers.find((answer) => answer.stream === stream)._id, { released: true });
} });
export const isReleased = untypedQuery({ handler: async (ctx, { answer }) => (await ctx.db.get(answer)).released });
export const generate = untypedAction({ handler: async (ctx, { words, pauseMs = 0, holdAt = null, fault = null }) => {
  const stream = await ctx.streams.create({ name: "answer.txt" });
  const answer = await ctx.runMutation("answers:begin", { stream: stream.id });
  for (let n = 0; n < words; n++) {
    await stream.write("wörd" + n + " ");
    await pause(pauseMs);
    // Until the client calls release.
    while (n === holdAt && !await ctx.runQuery("answers:isReleased", { answer })) await pause(20);
  }
  if (fault === "throw") throw new Error("no more words");
  if (fault === "loop") for (;;);
  if (fault === "forget") return null;
  const file = await stream.end();
  await ctx.runMutation("answers:finish", { answer, file });
  return file;
} });
`,
  "http.ts": `
import { httpAction, httpRouter } from "syncline/server";
const http = httpRouter();
http.route({ path: "/speak", method: "POST", handler: httpAction(async (ctx, request) => {
  const stream = await ctx.streams.create({ store: false });
  await stream.write(await request.text());
  if (new URL(request.url).searchParams.has("end")) await stream.end();
  return new Response(stream.id);
}) });
export default http;
`,
};

export const textOf = (words: number) => Array.from({ length: words }, (_, n) => `wörd${n} `).join("");

/** The parts that a reader received, and its end. */
export interface Read {
  readonly parts: string[];
  readonly end: Promise<"done" | StreamError>;
}

export function read(client: SynclineClient, id: string): Read {
  const parts: string[] = [];
  const run = async () => {
    try {
      for await (const part of readText(client, id)) parts.push(part);
      return "done";
    } catch (error) {
      assert.ok(error instanceof StreamError, String(error));
      return error;
    }
  };
  return { parts, end: run() };
}

/** Starts the action, and returns the id of its stream when clients know it. */
export async function generate(
  client: SynclineClient,
  args: Record<string, unknown>,
): Promise<{ readonly id: string; readonly file: Promise<unknown> }> {
  let answers: { readonly stream: string }[] = [];
  const release = client.subscribe("answers:list", {}, (value) => answers = value as typeof answers);
  const before = (await client.query("answers:list") as unknown[]).length;
  const file = client.action("answers:generate", args).catch((error) => error);
  await until(() => answers.length > before);
  release();
  return { id: answers.at(-1)?.stream ?? "", file };
}
