/** Users: list, search, and one of them at the side. */
import { useState } from "react";
import { api } from "../../server/api.ts";
import { go, href, replace, useRoute } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Time } from "../../ui/texts.tsx";
import { ListEnd, useLiveList } from "../../ui/use_list.tsx";
import { Card, Empty, View } from "../../ui/view.tsx";
import { NewUser } from "./new_user.tsx";
import { UserSheet } from "./user_sheet.tsx";

export function Users() {
  const { path: [, userId], search: params } = useRoute();
  const search = params.get("search") ?? "";
  const order = (params.get("order") ?? "newest") as "newest" | "oldest" | "email";
  const [creating, setCreating] = useState(false);
  const list = useLiveList(api.users.list, { order, ...(search !== "" && { search }) });
  const here = (changes: Record<string, string | undefined>) =>
    replace(["users"], { search, order, ...changes });
  return (
    <View
      title="Users"
      text="Everyone with an account of this app."
      actions={
        <Button tone="accent" onClick={() => setCreating(true)}>
          <Icon name="plus" /> New user
        </Button>
      }
    >
      <div className="row">
        <input
          className="input grow"
          type="search"
          placeholder="Address, name or id"
          aria-label="Search users"
          value={search}
          onChange={(event) => here({ search: event.target.value })}
        />
        <select
          className="input fit"
          aria-label="Order"
          value={order}
          onChange={(event) => here({ order: event.target.value })}
        >
          <option value="newest">Newest first</option>
          <option value="oldest">Oldest first</option>
          <option value="email">By address</option>
        </select>
      </div>
      <Card flush>
        <table className="table">
          <thead>
            <tr>
              <th>Address</th>
              <th>Name</th>
              <th>Signs in with</th>
              <th className="number">Sessions</th>
              <th>Created</th>
            </tr>
          </thead>
          <tbody>
            {list.results.map((user) => (
              <tr key={user.userId}>
                <td>
                  <a href={href(["users", user.userId], { search, order })}>{user.email ?? user.userId}</a>
                  {" "}
                  {!user.emailVerified && user.email !== null && <Badge tone="warn">not confirmed</Badge>}
                </td>
                <td>{user.name ?? <span className="quiet">–</span>}</td>
                <td>{user.hasPassword ? "Password" : "Mail or others"}</td>
                <td className="number">{user.sessions}</td>
                <td>
                  <Time at={user.createdAt} as="ago" />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {list.results.length === 0 && list.status === "Exhausted" && (
          <Empty title={search === "" ? "No one has signed up yet" : "No user is found"} />
        )}
        <ListEnd list={list} />
      </Card>
      {creating && <NewUser onClose={() => setCreating(false)} />}
      {userId !== undefined && <UserSheet userId={userId} onClose={() => go(["users"], { search, order })} />}
    </View>
  );
}
