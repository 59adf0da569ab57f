/** Wire messages: golden frames, and a hash that makes every schema change deliberate. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { z } from "zod";
import { clientMessageSchema } from "../../mod/protocol/client_messages.ts";
import * as server from "../../mod/protocol/server_messages.ts";
import { canonicalJson } from "../../mod/protocol/canonical_json.ts";

const serverSchemas = {
  Transition: server.transitionSchema,
  MutationResponse: server.mutationResponseSchema,
  ActionResponse: server.actionResponseSchema,
  FatalError: server.fatalErrorSchema,
  AuthError: server.authErrorSchema,
  Ping: server.pingSchema,
} as const;

const clientFrames = [
  '{"type":"Connect","sessionId":"6f9619ff-8b86-d011-b42d-00c04fc964ff","connectionCount":0,"lastCloseReason":null,"clientVersion":"web-1","features":["diffs"]}',
  '{"type":"Connect","sessionId":"6F9619FF-8B86-4011-B42D-00C04FC964FF","connectionCount":3,"lastCloseReason":"InternalError","clientVersion":""}',
  '{"type":"Connect","sessionId":"6f9619ff-8b86-d011-b42d-00c04fc964ff","connectionCount":1,"lastCloseReason":null,"clientVersion":"web-1","maxObservedTs":41}',
  '{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[{"type":"Add","queryId":0,"udfPath":"messages:list","args":{"channel":"a"}},{"type":"Remove","queryId":7}]}',
  '{"type":"Mutation","requestId":0,"udfPath":"messages:send","args":{"body":"hi"}}',
  '{"type":"Action","requestId":1,"udfPath":"mail/outgoing:send","args":{}}',
  '{"type":"Authenticate","baseVersion":0,"token":"a.b.c"}',
  '{"type":"Authenticate","baseVersion":1,"token":null}',
  '{"type":"Pong"}',
];

const serverFrames = [
  '{"type":"Transition","startVersion":{"querySet":0,"identity":0,"ts":0},"endVersion":{"querySet":1,"identity":0,"ts":9},"modifications":[{"type":"QueryUpdated","queryId":0,"value":[1],"logLines":[]},{"type":"QueryUpdated","queryId":1,"diff":{"$a":[1,-1]},"logLines":["[INFO] a"]},{"type":"QueryFailed","queryId":2,"errorMessage":"No","errorData":{"code":"no","data":null},"logLines":[]},{"type":"QueryFailed","queryId":3,"errorMessage":"Server Error","errorData":null,"logLines":[]},{"type":"QueryRemoved","queryId":4}]}',
  '{"type":"MutationResponse","requestId":0,"success":true,"result":null,"ts":4,"logLines":[]}',
  '{"type":"MutationResponse","requestId":0,"success":false,"errorMessage":"No","errorData":{"code":"no","data":{"a":1}},"logLines":[]}',
  '{"type":"ActionResponse","requestId":1,"success":true,"result":{"a":1},"logLines":[]}',
  '{"type":"ActionResponse","requestId":1,"success":false,"errorMessage":"Server Error","errorData":null,"logLines":[]}',
  '{"type":"FatalError","error":"malformed JSON"}',
  '{"type":"AuthError","error":"access token expired"}',
  '{"type":"Ping"}',
];

Deno.test("PC1 WS1 golden frames of the client are parsed unchanged", () => {
  for (const frame of clientFrames) {
    assert.deepEqual(clientMessageSchema.parse(JSON.parse(frame)), JSON.parse(frame), frame);
  }
});

Deno.test("PC1 WS2 golden frames of the server have only fields of the schemas", () => {
  for (const frame of serverFrames) {
    const message = JSON.parse(frame) as { type: keyof typeof serverSchemas };
    assert.deepEqual(serverSchemas[message.type].parse(message), message, frame);
  }
});

Deno.test("PC5 PC7 arguments that are not an object and session ids that are not a UUID are refused", () => {
  for (const args of [null, [], "text", 5, true]) {
    assert.ok(!clientMessageSchema.safeParse({ type: "Action", requestId: 1, udfPath: "a", args }).success);
  }
  for (const sessionId of ["", "123", "6f9619ff8b86d011b42d00c04fc964ff", null]) {
    const message = {
      type: "Connect",
      sessionId,
      connectionCount: 0,
      lastCloseReason: null,
      clientVersion: "",
    };
    assert.ok(!clientMessageSchema.safeParse(message).success);
  }
});

Deno.test("PC1 the schemas have not changed by accident", () => {
  const schemas = { client: clientMessageSchema, ...serverSchemas };
  const text = Object.entries(schemas).map(([name, schema]) =>
    `${name} ${canonicalJson(z.toJSONSchema(schema, { unrepresentable: "any", io: "input" }))}`
  ).join("\n");
  // A protocol change is a contract change: make it in client and server, then update the hash.
  assert.equal(createHash("sha256").update(text).digest("hex"), PINNED);
});

const PINNED = "85b0e54cc6fd50e9b5297c35666d41a5bcb9267249de0ef9d7af7e1684f326ea";
