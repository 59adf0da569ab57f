/** Rooms of connected clients with their members, streams of actions, and rate limits of mutations. */
import { useMemo, useState } from "react";
import type { RoomSummary } from "../../../../mod/presence/room_hub.ts";
import type { StreamSummary } from "../../../../mod/streams/streams.ts";
import { Badge } from "../../ui/controls.tsx";
import { count, countOf, size, Time } from "../../ui/format.tsx";
import { Card, Empty, Loading, Table, View } from "../../ui/view.tsx";
import { useRequest } from "../../ui/use_request.tsx";
import { RateLimits, type RateLimitState } from "./rate_limits.tsx";

/** Answer of `GET /api/admin/live`. */
interface LiveState {
  readonly rooms: RoomSummary;
  readonly streams: StreamSummary;
  readonly rateLimits: RateLimitState;
}

const ASKED_EVERY_MS = 4_000;

export function Live() {
  const { value, error } = useRequest<LiveState>("/api/admin/live", ASKED_EVERY_MS);
  // Ages in an answer are relative to the time at which it arrived.
  const answeredAt = useMemo(() => Date.now(), [value]);
  return (
    <View title="Live" text="Clients in rooms, streams of actions, and rate limits of mutations.">
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      {value === undefined && error === null && <Loading />}
      {value !== undefined && <Rooms rooms={value.rooms} />}
      {value !== undefined && <Streams streams={value.streams} answeredAt={answeredAt} />}
      {value !== undefined && <RateLimits limits={value.rateLimits} />}
    </View>
  );
}

function Rooms({ rooms: { rooms, members, largest } }: { readonly rooms: RoomSummary }) {
  const [open, setOpen] = useState<string | null>(null);
  const shown = largest.find(({ room }) => room === open);
  if (rooms === 0) {
    return (
      <Card title="Rooms">
        <Empty title="No client is in a room">
          <p>
            Clients share cursors, typing and other ephemeral state in rooms:{" "}
            <a href="./docs/presence" target="_blank" rel="noopener">learn more</a>.
          </p>
        </Empty>
      </Card>
    );
  }
  return (
    <>
      <Card flush title={`${countOf(rooms, "room")}, ${countOf(members, "member")}`}>
        <Table head={["Room", { number: "Members" }]}>
          {largest.map(({ room, size: members }) => (
            <tr key={room}>
              <td className="wrap">
                <button
                  type="button"
                  className="link"
                  aria-expanded={room === open}
                  onClick={() => setOpen(room === open ? null : room)}
                >
                  {room}
                </button>
              </td>
              <td className="number">{count(members)}</td>
            </tr>
          ))}
        </Table>
      </Card>
      {shown !== undefined && (
        <Card flush title={`Members of ${shown.room}`}>
          <Table head={["Member", "User", "Information", "State"]} cards>
            {shown.members.map(({ id, userId, info, state }) => (
              <tr key={id}>
                <td className="mono">{id}</td>
                <td className="mono">{userId ?? "–"}</td>
                <td className="wrap mono">{JSON.stringify(info)}</td>
                <td className="wrap mono">{JSON.stringify(state)}</td>
              </tr>
            ))}
          </Table>
        </Card>
      )}
    </>
  );
}

const TONES = { open: "accent", ended: "good", failed: "bad" } as const;

function Streams({ streams: { open, readers, bytes, newest }, answeredAt }: {
  readonly streams: StreamSummary;
  readonly answeredAt: number;
}) {
  if (newest.length === 0) {
    return (
      <Card title="Streams">
        <Empty title="No streams">
          <p>
            Actions write output to streams while clients read it:{" "}
            <a href="./docs/streams" target="_blank" rel="noopener">learn more</a>.
          </p>
        </Empty>
      </Card>
    );
  }
  return (
    <Card flush title={`${countOf(open, "open stream")}, ${countOf(readers, "reader")}, ${size(bytes)}`}>
      <Table head={["Action", "State", { number: "Size" }, { number: "Readers" }, { number: "Started" }]}>
        {newest.map((stream, index) => (
          <tr key={index}>
            <td className="wrap mono">{stream.udfPath}</td>
            <td>
              <Badge tone={TONES[stream.state]}>{stream.state}</Badge>
            </td>
            <td className="number">{size(stream.size)}</td>
            <td className="number">{count(stream.readers)}</td>
            <td className="number">
              <Time at={answeredAt - stream.ageMs} as="ago" />
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
