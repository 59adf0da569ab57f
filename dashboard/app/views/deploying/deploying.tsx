/** Deploy keys, environment variables and data migrations. */
import { View } from "../../ui/view.tsx";
import { DeployKeys } from "./deploy_keys.tsx";
import { Migrations } from "./migrations.tsx";
import { Variables } from "./variables.tsx";

export function Deploying() {
  return (
    <View
      title="Deployment"
      text="Data migrations, environment variables and deploy keys."
    >
      <Migrations />
      <Variables />
      <DeployKeys />
    </View>
  );
}
