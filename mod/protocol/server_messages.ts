/** Messages from the server over `/api/sync`: one zod schema each, with the derived types. */
import { z } from "zod";

export const stateVersionSchema = z.object({ querySet: z.int(), identity: z.int(), ts: z.int() });

/** Details of a user error; `null` for any other error (SG6). */
export const errorDataSchema = z.object({ code: z.string(), data: z.unknown() }).nullable();

const logLines = z.array(z.string());
/** Identifies the error in the execution log. Only for clients that support it, and for errors without details. */
const errorId = z.string().optional();

export const queryUpdatedSchema = z.object({
  type: z.literal("QueryUpdated"),
  queryId: z.int(),
  /** The full result. Either `value` or `diff` is set. */
  value: z.unknown().optional(),
  /** Edits to the result that this socket received last (DF). */
  diff: z.unknown().optional(),
  logLines,
});

export const queryFailedSchema = z.object({
  type: z.literal("QueryFailed"),
  queryId: z.int(),
  errorMessage: z.string(),
  errorData: errorDataSchema,
  errorId,
  logLines,
});

export const queryRemovedSchema = z.object({ type: z.literal("QueryRemoved"), queryId: z.int() });

export const transitionSchema = z.object({
  type: z.literal("Transition"),
  startVersion: stateVersionSchema,
  endVersion: stateVersionSchema,
  modifications: z.array(
    z.discriminatedUnion("type", [queryUpdatedSchema, queryFailedSchema, queryRemovedSchema]),
  ),
});

export const mutationResponseSchema = z.discriminatedUnion("success", [
  z.object({
    type: z.literal("MutationResponse"),
    requestId: z.int(),
    success: z.literal(true),
    result: z.unknown(),
    ts: z.int(),
    logLines,
  }),
  z.object({
    type: z.literal("MutationResponse"),
    requestId: z.int(),
    success: z.literal(false),
    errorMessage: z.string(),
    errorData: errorDataSchema,
    errorId,
    logLines,
  }),
]);

export const actionResponseSchema = z.discriminatedUnion("success", [
  z.object({
    type: z.literal("ActionResponse"),
    requestId: z.int(),
    success: z.literal(true),
    result: z.unknown(),
    logLines,
  }),
  z.object({
    type: z.literal("ActionResponse"),
    requestId: z.int(),
    success: z.literal(false),
    errorMessage: z.string(),
    errorData: errorDataSchema,
    errorId,
    logLines,
  }),
]);

/** A member of a room as others see it. `info` is the result of the app's function. */
export const roomMemberSchema = z.object({
  userId: z.string().nullable(),
  info: z.unknown(),
  state: z.record(z.string(), z.unknown()),
});
const roomMembers = z.record(z.string(), roomMemberSchema);

/** The client is a member: `self` is its id in the room. Precedes the first `RoomState`. */
export const roomJoinedSchema = z.object({
  type: z.literal("RoomJoined"),
  room: z.string(),
  self: z.string(),
});

/** All members of a room, by their ids. */
export const roomStateSchema = z.object({
  type: z.literal("RoomState"),
  room: z.string(),
  members: roomMembers,
});

/** Changes since the previous frame. `joined` also contains members whose `info` has changed. */
export const roomChangedSchema = z.object({
  type: z.literal("RoomChanged"),
  room: z.string(),
  joined: roomMembers.optional(),
  states: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
  left: z.array(z.string()).optional(),
});

/** A client or its newest state was refused. */
export const roomRefusedSchema = z.object({
  type: z.literal("RoomRefused"),
  room: z.string(),
  /** Whether the client is a member with its earlier state. */
  isMember: z.boolean(),
  errorMessage: z.string(),
  errorData: errorDataSchema,
});

export const fatalErrorSchema = z.object({ type: z.literal("FatalError"), error: z.string() });
export const authErrorSchema = z.object({ type: z.literal("AuthError"), error: z.string() });
export const pingSchema = z.object({ type: z.literal("Ping") });

export type ErrorData = z.infer<typeof errorDataSchema>;
export type QueryUpdated = z.infer<typeof queryUpdatedSchema>;
export type QueryFailed = z.infer<typeof queryFailedSchema>;
export type QueryRemoved = z.infer<typeof queryRemovedSchema>;
export type Transition = z.infer<typeof transitionSchema>;
export type MutationResponse = z.infer<typeof mutationResponseSchema>;
export type ActionResponse = z.infer<typeof actionResponseSchema>;
export type FatalError = z.infer<typeof fatalErrorSchema>;
export type AuthError = z.infer<typeof authErrorSchema>;
export type Ping = z.infer<typeof pingSchema>;
export type RoomMember = z.infer<typeof roomMemberSchema>;
export type RoomMessage =
  | z.infer<typeof roomJoinedSchema>
  | z.infer<typeof roomStateSchema>
  | z.infer<typeof roomChangedSchema>
  | z.infer<typeof roomRefusedSchema>;
export type ServerMessage =
  | Transition
  | MutationResponse
  | ActionResponse
  | FatalError
  | AuthError
  | RoomMessage
  | Ping;
