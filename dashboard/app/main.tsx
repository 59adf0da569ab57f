/** Starts the dashboard: one client for the page, signed in with the administrator's tokens. */
import "./first_view.ts";
import { setNonce } from "get-nonce";
import { StrictMode, useEffect, useState, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { SynclineProvider } from "syncline/react";
import { adminSession } from "./server/admin_session.ts";
import { currentRoute, replace } from "./shell/route.ts";
import { SignIn } from "./shell/sign_in.tsx";
import { Shell } from "./shell/shell.tsx";
import { applyTheme } from "./shell/theme.ts";
import { viewNamed } from "./shell/views.ts";
import { RoleProvider } from "./ui/access.tsx";
import { Toasts } from "./ui/toasts.tsx";
import "./ui/tokens.css";
import "./ui/base.css";
import "./ui/ui.css";
import "./ui/table.css";
import "./shell/shell.css";
import "./views/backups/backups.css";
import "./views/data/data.css";
import "./views/files/files.css";
import "./views/functions/functions.css";
import "./views/logs/logs.css";
import "./views/overview/overview.css";
import "./views/settings/settings.css";
import "./views/versions/versions.css";

applyTheme();
const firstView = adminSession.adminId() === null ? undefined : viewNamed(currentRoute().path[0]);
const isComing = firstView?.fetch();
// Packages that insert <style> elements need the nonce because of the page's content security policy.
setNonce(document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "");

const setupToken = takeSetupToken();

const client = new SynclineClient(location.origin);

function Dashboard() {
  const adminId = useSyncExternalStore(adminSession.onChange, adminSession.adminId);
  const [ended, setEnded] = useState(false);
  useEffect(() => {
    if (adminId === null) {
      client.clearAuth();
      return;
    }
    setEnded(true);
    client.setAuth(({ forceRefresh }) => adminSession.accessToken({ force: forceRefresh }));
  }, [adminId]);
  if (adminId === null) return <SignIn setupToken={setupToken} ended={ended} />;
  return (
    <RoleProvider key={adminId}>
      <Shell />
    </RoleProvider>
  );
}

/** Reads the setup token from the address and removes it there. */
function takeSetupToken(): string | null {
  const token = new URLSearchParams(location.hash.slice(1)).get("svc_setup_token");
  if (token !== null) replace([]);
  return token;
}

const place = document.getElementById("root");
if (place === null) throw new Error("The page has no #root element");

// Wait for the overview so that frame and content are drawn in one pass.
if (firstView?.name === "overview") await isComing;

createRoot(place).render(
  <StrictMode>
    <SynclineProvider client={client}>
      <Dashboard />
      <Toasts />
    </SynclineProvider>
  </StrictMode>,
);
