/** What deploys need beside the code: keys that may deploy, variables of actions, and migrations of documents. */
import { View } from "../../ui/view.tsx";
import { DeployKeys } from "./deploy_keys.tsx";
import { Migrations } from "./migrations.tsx";
import { Variables } from "./variables.tsx";

export function Deploying() {
  return (
    <View
      title="Deploying"
      text="Who may deploy, what actions find in ctx.env, and documents on their way to a new schema."
    >
      <Migrations />
      <Variables />
      <DeployKeys />
    </View>
  );
}
