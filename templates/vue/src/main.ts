/** The page: one client, which the plugin provides to all components. */
import { SynclineClient } from "syncline/client";
import { SynclinePlugin } from "syncline/vue";
import { createApp } from "vue";
import App from "./App.vue";

const client = new SynclineClient(location.origin);

createApp(App).use(SynclinePlugin, client).mount("#root");
