/** Keys, environment variables and data migrations. */
import { View } from "../../ui/view.tsx";
import { ApiKeys } from "./api_keys.tsx";
import { Migrations } from "./migrations.tsx";
import { Variables } from "./variables.tsx";

export function Deploying() {
  return (
    <View
      title="Deployment"
      text="Data migrations, environment variables and keys."
    >
      <Migrations />
      <Variables />
      <ApiKeys />
    </View>
  );
}
