/** Messages between two processes of the server: JSON, one a line. */

const encoder = new TextEncoder();

export function encodeJsonLine(message: object): Uint8Array<ArrayBuffer> {
  return encoder.encode(`${JSON.stringify(message)}\n`);
}

/** Yields the messages of a stream as JSON strings. Throws a `RangeError` for one longer than `charsMax`. */
export async function* readJsonLines(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  charsMax: number,
): AsyncGenerator<string> {
  let parts: string[] = [];
  let chars = 0;
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      parts.push(text.slice(start, end));
      start = end + 1;
      yield parts.join("");
      parts = [];
      chars = 0;
    }
    if (start === text.length) continue;
    parts.push(text.slice(start));
    chars += text.length - start;
    if (chars > charsMax) throw new RangeError("A message is too long");
  }
}
