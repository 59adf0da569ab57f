/** Routes whose behavior tests inspect. */
import { httpAction, httpRouter, UserError } from "syncline/server";

const http = httpRouter();

http.route({
  path: "/who",
  method: "GET",
  handler: httpAction((ctx, request) =>
    Response.json({
      userId: ctx.auth.userId(),
      url: request.url,
      method: request.method,
      headers: [...request.headers],
    }, { headers: [["x-own", "yes"], ["set-cookie", "a=1"], ["set-cookie", "b=2"], ["keep-alive", "x"]] })
  ),
});

http.route({
  path: "/echo",
  method: "POST",
  handler: httpAction((_ctx, request) => new Response(request.body)),
});

http.route({
  path: "/notes",
  method: "POST",
  handler: httpAction(async (ctx, request) => {
    await ctx.runMutation("notes:add", { text: await request.text() });
    return Response.json(await ctx.runQuery("notes:texts"), { status: 201 });
  }),
});

http.route({
  path: "/throw",
  method: "GET",
  handler: httpAction((_ctx, request) => {
    if (request.url.endsWith("?user")) throw new UserError("teapot", "I am a teapot", { spout: true });
    throw new Error("the secret reason");
  }),
});

http.route({
  path: "/nothing",
  method: "GET",
  handler: httpAction(() => undefined as unknown as Response),
});

http.route({
  path: "/empty",
  method: "DELETE",
  handler: httpAction(() => new Response(null, { status: 204 })),
});

/** Sends each line when the previous one is sent, until the client disconnects. Records the disconnect. */
http.route({
  path: "/ticks",
  method: "GET",
  handler: httpAction((ctx, request) => {
    let count = 0;
    const gone = Promise.withResolvers<void>();
    request.signal.addEventListener("abort", async () => {
      await ctx.runMutation("notes:add", { text: "the client went away" });
      gone.resolve();
    });
    const encoder = new TextEncoder();
    return new Response(
      new ReadableStream({
        async pull(controller) {
          if (count > 0) {
            await Promise.race([
              gone.promise,
              new Promise((resolve) => setTimeout(resolve, 20)),
            ]);
          }
          controller.enqueue(encoder.encode(`tick ${count++}\n`));
        },
        async cancel() {
          await gone.promise;
        },
      }, { highWaterMark: 0 }),
    );
  }),
});

/** Endless. Records each megabyte it has produced. */
http.route({
  path: "/endless",
  method: "GET",
  handler: httpAction((ctx) => {
    let made = 0;
    return new Response(
      new ReadableStream({
        async pull(controller) {
          made += 65_536;
          if (made % 1_048_576 === 0) await ctx.runMutation("notes:add", { text: `made ${made}` });
          controller.enqueue(new Uint8Array(65_536));
        },
      }, { highWaterMark: 0 }),
    );
  }),
});

http.route({
  path: "/breaks",
  method: "GET",
  handler: httpAction(() => {
    let sent = false;
    return new Response(
      new ReadableStream({
        pull(controller) {
          if (sent) throw new Error("broken in the middle");
          sent = true;
          controller.enqueue(new Uint8Array(10));
        },
      }, { highWaterMark: 0 }),
    );
  }),
});

http.route({
  pathPrefix: "/assets/",
  method: "GET",
  handler: httpAction((_ctx, request) => new Response(new URL(request.url).pathname)),
});

export default http;
