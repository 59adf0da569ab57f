/** Messages from the client over `/api/sync`: one zod schema each, with the derived types. */
import { z } from "zod";

const counter = z.int().min(0);

/** Keeps the parsed object: nothing is copied, and a key such as `__proto__` is plain data. */
export const argsObjectSchema = z.custom<Record<string, unknown>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "Invalid input: expected object",
);

export const connectSchema = z.object({
  type: z.literal("Connect"),
  sessionId: z.guid(),
  connectionCount: counter,
  lastCloseReason: z.string().nullable(),
  clientVersion: z.string(),
  features: z.array(z.string()).optional(),
  /** Highest ts in Transitions and mutation responses that the client has received, on any socket (WS18). */
  maxObservedTs: counter.optional(),
});

export const addQuerySchema = z.object({
  type: z.literal("Add"),
  queryId: z.int(),
  udfPath: z.string(),
  args: argsObjectSchema,
});

export const removeQuerySchema = z.object({ type: z.literal("Remove"), queryId: z.int() });

export const querySetModificationSchema = z.discriminatedUnion("type", [addQuerySchema, removeQuerySchema]);

export const modifyQuerySetSchema = z.object({
  type: z.literal("ModifyQuerySet"),
  baseVersion: counter,
  newVersion: counter,
  modifications: z.array(querySetModificationSchema),
});

export const mutationSchema = z.object({
  type: z.literal("Mutation"),
  requestId: z.int(),
  udfPath: z.string(),
  args: argsObjectSchema,
});

export const actionSchema = z.object({
  type: z.literal("Action"),
  requestId: z.int(),
  udfPath: z.string(),
  args: argsObjectSchema,
});

export const authenticateSchema = z.object({
  type: z.literal("Authenticate"),
  baseVersion: counter,
  token: z.string().nullable(),
});

/** Name of a room. */
const room = z.string().min(1).max(256);

/** Joins a room, or replaces the own state in it. Needs the feature `presence` of Connect. */
export const setPresenceSchema = z.object({ type: z.literal("SetPresence"), room, state: argsObjectSchema });

export const leaveRoomSchema = z.object({ type: z.literal("LeaveRoom"), room });

export const pongSchema = z.object({ type: z.literal("Pong") });

export const clientMessageSchema = z.discriminatedUnion("type", [
  connectSchema,
  modifyQuerySetSchema,
  mutationSchema,
  actionSchema,
  authenticateSchema,
  setPresenceSchema,
  leaveRoomSchema,
  pongSchema,
]);

export type Connect = z.infer<typeof connectSchema>;
export type AddQuery = z.infer<typeof addQuerySchema>;
export type RemoveQuery = z.infer<typeof removeQuerySchema>;
export type QuerySetModification = z.infer<typeof querySetModificationSchema>;
export type ModifyQuerySet = z.infer<typeof modifyQuerySetSchema>;
export type Mutation = z.infer<typeof mutationSchema>;
export type Action = z.infer<typeof actionSchema>;
export type Authenticate = z.infer<typeof authenticateSchema>;
export type SetPresence = z.infer<typeof setPresenceSchema>;
export type LeaveRoom = z.infer<typeof leaveRoomSchema>;
export type Pong = z.infer<typeof pongSchema>;
export type ClientMessage = z.infer<typeof clientMessageSchema>;
