/** Watches the version of the code at each server over a socket, and checks that each ts has one. */
import { SocketView } from "./socket_view.ts";

interface Look {
  readonly code: number;
  /** The version whose code wrote the newest document. */
  readonly by: number;
}

export class CodeView implements AsyncDisposable {
  readonly #codes = new Map<number, number>();
  readonly #views: readonly SocketView<Look>[];

  constructor(urls: readonly string[], faults: string[]) {
    this.#views = urls.map((url) => {
      let shown = 0;
      return new SocketView<Look>([url], {
        at: 0,
        udfPath: "app:look",
        look: ({ code }, { ts }) => {
          if (ts < shown) faults.push(`${url} shows ts ${ts} behind ts ${shown}`);
          shown = Math.max(shown, ts);
          const known = this.#codes.get(ts) ?? code;
          if (known !== code) faults.push(`${url} computes with ${code} at ts ${ts}, another with ${known}`);
          this.#codes.set(ts, known);
        },
      });
    });
  }

  /** The versions in the order of the ts at which they were seen. */
  get codes(): number[] {
    const seen = [...this.#codes].sort(([a], [b]) => a - b).map(([, code]) => code);
    return seen.filter((code, at) => code !== seen[at - 1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#views.map((view) => view.close()));
  }
}
