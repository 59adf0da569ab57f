/** Tests a blob store with a blob that no document references; the orphan sweep removes leftovers. */
import { randomBytes } from "node:crypto";
import type { LocationProbe } from "../../kit/locations/location_probe.ts";
import type { BlobStore } from "./blob_store.ts";

/** `place` is shown to users. `explained` turns an error into one with advice. */
export function testBlobStore(
  store: BlobStore,
  { place, explained = (error) => error }: {
    readonly place: string;
    readonly explained?: (error: unknown) => unknown;
  },
): LocationProbe {
  const name = randomBytes(16).toString("hex");
  const told = async <Result>(run: () => Promise<Result>): Promise<Result> => {
    try {
      return await run();
    } catch (error) {
      throw explained(error);
    }
  };
  return {
    place,
    list: () =>
      told(async () => {
        for await (const _ of store.list()) return;
      }),
    write: (bytes) =>
      told(async () => {
        const writer = await store.create(name);
        try {
          await writer.write(bytes);
          await writer.commit();
        } catch (error) {
          await writer.abort();
          throw error;
        }
      }),
    read: () =>
      told(async () => {
        const found = await store.read(name, null);
        return found === null ? null : await new Response(found).bytes();
      }),
    remove: () => told(() => store.remove(name)),
  };
}
