/** Messages of the sync protocol that the load sends. */

/** A function with its arguments as JSON. */
export interface Call {
  readonly udfPath: string;
  readonly args: string;
}

export const pong = '{"type":"Pong"}';

export function connectMessage(features: readonly string[] = []): string {
  return JSON.stringify({
    type: "Connect",
    sessionId: crypto.randomUUID(),
    connectionCount: 0,
    lastCloseReason: null,
    clientVersion: "bench",
    ...(features.length > 0 && { features }),
  });
}

/** The first subscriptions of a socket. Query ids count from 0. */
export function subscribeMessage(queries: readonly Call[]): string {
  const modifications = queries.map(({ udfPath, args }, queryId) =>
    `{"type":"Add","queryId":${queryId},"udfPath":"${udfPath}","args":${args}}`
  );
  return `{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[${
    modifications.join(",")
  }]}`;
}

/** A mutation. The default id is a placeholder that the `trigger` command replaces with consecutive numbers. */
export function mutationMessage({ udfPath, args }: Call, requestId: number | "{id}" = "{id}"): string {
  return `{"type":"Mutation","requestId":${requestId},"udfPath":"${udfPath}","args":${args}}`;
}

/** A mutation that sets the value of a row. */
export function setRowMessage(number: number, value: number): string {
  return mutationMessage({ udfPath: "rows:set", args: `{"number":${number},"value":${value}}` });
}
