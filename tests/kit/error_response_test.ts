import assert from "node:assert/strict";
import { ServiceError, UserError } from "../../mod/errors.ts";
import { failureResponse } from "../../mod/kit/error_response.ts";

async function answered(error: unknown): Promise<readonly unknown[]> {
  const logged: string[] = [];
  const response = failureResponse(error, (level, message) => logged.push(`${level} ${message}`));
  const { errorMessage, errorData } = await response.json();
  return [response.status, errorData.code, errorMessage, logged];
}

Deno.test("UP16 a full disk is answered with 507, and the log names it", async () => {
  const full = Object.assign(new Error("write /data/blobs/x"), { code: "ENOSPC" });
  const message = new ServiceError("disk_full").message;
  const logged = ["error A request failed: the disk is full"];
  for (const error of [full, new Error("Upload failed", { cause: full })]) {
    assert.deepEqual(await answered(error), [507, "disk_full", message, logged]);
  }
});

Deno.test("AE1 details of unexpected errors are only in the log", async () => {
  assert.deepEqual(await answered(new Error("secret")), [
    ...[500, "internal", "Server Error"],
    ["error A request failed"],
  ]);
  assert.deepEqual(await answered(new UserError("taken", "Taken")), [400, "taken", "Taken", []]);
  const refused = new Error("call failed", { cause: new ServiceError("overloaded", "Full") });
  assert.deepEqual(await answered(refused), [503, "overloaded", "Full", []]);
});
