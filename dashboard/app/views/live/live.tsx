/** Rooms of connected clients, with their members. */
import { useState } from "react";
import type { RoomSummary } from "../../../../mod/presence/room_hub.ts";
import { count, countOf } from "../../ui/format.tsx";
import { Card, Empty, Loading, Table, View } from "../../ui/view.tsx";
import { useRequest } from "../../ui/use_request.tsx";

/** Answer of `GET /api/admin/live`. */
interface LiveState {
  readonly rooms: RoomSummary;
}

const ASKED_EVERY_MS = 2_000;

export function Live() {
  const { value, error } = useRequest<LiveState>("/api/admin/live", ASKED_EVERY_MS);
  return (
    <View title="Live" text="Clients in rooms now. Nothing of this is stored.">
      {error !== null && <p className="field-error" role="alert">{error}</p>}
      {value === undefined && error === null && <Loading />}
      {value !== undefined && <Rooms rooms={value.rooms} />}
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
          {largest.map(({ room, size }) => (
            <tr key={room}>
              <td className="wrap">
                <button
                  type="button"
                  className="quiet"
                  aria-expanded={room === open}
                  onClick={() => setOpen(room === open ? null : room)}
                >
                  {room}
                </button>
              </td>
              <td className="number">{count(size)}</td>
            </tr>
          ))}
        </Table>
      </Card>
      {shown !== undefined && (
        <Card flush title={`Members of ${shown.room}`}>
          <Table head={["Member", "User", "Information", "State"]}>
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
