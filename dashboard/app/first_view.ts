/**
 * Modules shared by the first view and the views loaded later. The build adds an import of this file to every lazily loaded
 * module, which makes the bundler emit these modules as one chunk instead of many small ones.
 */
import "get-nonce";
import "react";
import "react-dom/client";
import "syncline/client";
import "syncline/react";
import "./server/admin_session.ts";
import "./server/api.ts";
import "./shell/route.ts";
import "./shell/theme.ts";
import "./shell/views.ts";
import "./ui/controls.tsx";
import "./ui/focus.ts";
import "./ui/toasts.tsx";
import "./ui/view.tsx";
import "./ui/format.tsx";
import "./ui/use_request.tsx";
