/** `node:async_hooks` for app code: context that follows a call, without the hooks that show other code's resources. */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";

export { AsyncLocalStorage, AsyncResource };
export default { AsyncLocalStorage, AsyncResource };
