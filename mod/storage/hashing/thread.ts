/** The thread that hashes what main puts into the memory they share. */
import { createHash, type Hash } from "node:crypto";
import type { FromThread, ToThread } from "./messages.ts";

const hashes = new Map<number, Hash>();
let memory = new Uint8Array(0) as Uint8Array;

self.onmessage = ({ data }: MessageEvent<ToThread>) => {
  switch (data.type) {
    case "Memory":
      memory = new Uint8Array(data.memory);
      return;
    case "Update": {
      const { hash, slot, start, end } = data;
      hashes.set(hash, hashOf(hash).update(memory.subarray(start, end)));
      return tell({ type: "Taken", slot });
    }
    case "Digest": {
      const sha256 = hashOf(data.hash).digest("hex");
      hashes.delete(data.hash);
      return tell({ type: "Digested", hash: data.hash, sha256 });
    }
    case "Forget":
      hashes.delete(data.hash);
      return;
    default:
      return data satisfies never;
  }
};

function hashOf(number: number): Hash {
  return hashes.get(number) ?? createHash("sha256");
}

function tell(message: FromThread): void {
  self.postMessage(message);
}
