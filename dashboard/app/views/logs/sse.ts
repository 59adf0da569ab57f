/** Reads server-sent events with `fetch`, because `EventSource` cannot send an Authorization header. */

export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

/** Maximum length of an event; the server's are shorter. */
const CHARS_MAX = 4_000_000;

export async function* readEvents(response: Response): AsyncGenerator<StreamEvent> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      if (text.length > CHARS_MAX) return;
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const event = eventOf(part);
        if (event !== null) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function eventOf(part: string): StreamEvent | null {
  let event = "message";
  const data: string[] = [];
  for (const line of part.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return data.length === 0 ? null : { event, data: data.join("\n") };
}
