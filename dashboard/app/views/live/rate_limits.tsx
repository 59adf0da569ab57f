/** Rate limits of the app's mutations: buckets in use, and refused calls. */
import type { UsedRateLimit } from "../../../../mod/functions/isolate/ctx/rate_limit_api.ts";
import type { RefusedLimit } from "../../../../mod/ops/stats/refused_limits.ts";
import { count, countOf, Time } from "../../ui/format.tsx";
import { Card, Empty, Table } from "../../ui/view.tsx";

export interface RateLimitState {
  readonly used: readonly UsedRateLimit[];
  readonly refused: readonly RefusedLimit[];
}

export function RateLimits({ limits: { used, refused } }: { readonly limits: RateLimitState }) {
  const names = [...new Set([...used, ...refused].map(({ name }) => name))].toSorted();
  if (names.length === 0) {
    return (
      <Card title="Rate limits">
        <Empty title="No rate limit is in use">
          <p>
            Mutations limit how often a user calls them:{" "}
            <a href="./docs/rate_limits" target="_blank" rel="noopener">learn more</a>.
          </p>
        </Empty>
      </Card>
    );
  }
  return (
    <Card flush title={countOf(names.length, "rate limit")}>
      <Table
        head={[
          "Limit",
          { number: "Keys" },
          "Emptiest key",
          { number: "Tokens left" },
          { number: "Refused calls" },
          { number: "Last refusal" },
        ]}
      >
        {names.map((name) => {
          const { keys = 0, emptiest = null } = used.find((limit) => limit.name === name) ?? {};
          const refusals = refused.find((limit) => limit.name === name);
          return (
            <tr key={name}>
              <td className="wrap">{name}</td>
              <td className="number">{count(keys)}</td>
              <td className="wrap mono">{emptiest?.key ?? "–"}</td>
              <td className="number">
                {emptiest === null ? "–" : `${count(emptiest.left)} of ${count(emptiest.burst)}`}
              </td>
              <td className="number">{count(refusals?.count ?? 0)}</td>
              <td className="number">
                {refusals === undefined ? "–" : <Time at={refusals.lastAt} as="ago" />}
              </td>
            </tr>
          );
        })}
      </Table>
    </Card>
  );
}
