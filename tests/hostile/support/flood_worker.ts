/** Sockets that send the same frame at the maximum rate, in a separate thread. */
/// <reference lib="deno.worker" />

const FRAMES = 2_000;

const encoder = new TextEncoder();

/** A masked text frame, whose mask is zero. */
function frame(text: string): Uint8Array {
  const payload = encoder.encode(text);
  return new Uint8Array([0x81, 0x80 | payload.length, 0, 0, 0, 0, ...payload]);
}

function many(text: string): Uint8Array {
  return new Uint8Array(Array.from({ length: FRAMES }, () => [...frame(text)]).flat());
}

async function flood(port: number, frames: Uint8Array, until: number): Promise<number> {
  let sent = 0;
  const conn = await Deno.connect({ hostname: "127.0.0.1", port });
  // A pending write would keep the worker from ending.
  const timer = setTimeout(() => conn.close(), Math.max(0, until - performance.now()));
  const request =
    `GET /api/sync HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  try {
    await conn.write(encoder.encode(request));
    while (performance.now() < until) {
      for (let at = 0; at < frames.length;) at += await conn.write(frames.subarray(at));
      sent += FRAMES;
    }
  } catch {
    // The server closed the connection, or the time is up.
  } finally {
    clearTimeout(timer);
    if (performance.now() < until) conn.close();
  }
  return sent;
}

self.onmessage = async ({ data: { port, sockets, ms, text } }) => {
  const frames = many(text);
  const until = performance.now() + ms;
  const counts = await Promise.all(Array.from({ length: sockets }, async () => {
    let sent = 0;
    let ended = 0;
    // Reopens a closed connection.
    while (performance.now() < until) {
      sent += await flood(port, frames, until).catch(() => 0);
      ended++;
    }
    return { sent, ended: ended - 1 };
  }));
  const sent = counts.reduce((sum, count) => sum + count.sent, 0);
  const ended = counts.reduce((sum, count) => sum + count.ended, 0);
  self.postMessage(`${sent} frames in ${ms} ms, thrown out ${ended} times`);
};
