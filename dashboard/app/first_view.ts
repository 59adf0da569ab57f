/**
 * What the first view is made of, but for the view itself. The build has all that is loaded later import this, so that these
 * modules come as one file: as many files as there are ways to share them would each be asked for before the first view.
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
import "./ui/badge.tsx";
import "./ui/button.tsx";
import "./ui/field.tsx";
import "./ui/icon.tsx";
import "./ui/notes.tsx";
import "./ui/table.tsx";
import "./ui/texts.tsx";
import "./ui/use_request.ts";
import "./ui/view.tsx";
