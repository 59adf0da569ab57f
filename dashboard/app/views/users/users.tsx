/** Users: list, search and details. */
import { api } from "../../server/api.ts";
import { go, href, replace, useCreateDialog, useRoute } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { SearchBar } from "../../ui/search_bar.tsx";
import { Table } from "../../ui/table.tsx";
import { Time } from "../../ui/format.tsx";
import { ListEnd, useLiveList } from "../../ui/use_list.tsx";
import { Card, Empty, View } from "../../ui/view.tsx";
import { NewUser } from "./new_user.tsx";
import { UserSheet } from "./user_sheet.tsx";

const ORDERS = [["newest", "Newest first"], ["oldest", "Oldest first"], ["email", "By email"]] as const;

export function Users() {
  const { path: [, userId], search: params } = useRoute();
  const search = params.get("search") ?? "";
  const order = (params.get("order") ?? "newest") as "newest" | "oldest" | "email";
  const [creating, setCreating] = useCreateDialog("users");
  const list = useLiveList(api.users.list, { order, ...(search !== "" && { search }) });
  const here = (changes: Record<string, string | undefined>) =>
    replace(["users"], { search, order, ...changes });
  return (
    <View
      title="Users"
      text="Everyone with an account in this app."
      actions={
        <Button tone="accent" onClick={() => setCreating(true)}>
          <Icon name="plus" /> New user
        </Button>
      }
    >
      <SearchBar
        label="Search users"
        placeholder="Email, name or ID"
        value={search}
        onChange={(search) => here({ search })}
        choices={[{ label: "Order", value: order, onChange: (order) => here({ order }), options: ORDERS }]}
      />
      <Card flush>
        <Table head={["Email", "Name", "Sign-in method", { number: "Sessions" }, "Created"]}>
          {list.results.map((user) => (
            <tr key={user.userId}>
              <td>
                <a href={href(["users", user.userId], { search, order })}>{user.email ?? user.userId}</a>{" "}
                {!user.emailVerified && user.email !== null && <Badge tone="warn">unverified</Badge>}
              </td>
              <td>{user.name ?? <span className="quiet">–</span>}</td>
              <td>{user.hasPassword ? "Password" : "Mail or provider"}</td>
              <td className="number">{user.sessions}</td>
              <td>
                <Time at={user.createdAt} as="ago" />
              </td>
            </tr>
          ))}
        </Table>
        {list.results.length === 0 && list.status === "Exhausted" && (
          <Empty title={search === "" ? "No users yet" : "No matching users"} />
        )}
        <ListEnd list={list} />
      </Card>
      {creating && <NewUser onClose={() => setCreating(false)} />}
      {userId !== undefined && <UserSheet userId={userId} onClose={() => go(["users"], { search, order })} />}
    </View>
  );
}
