/** The document of every page. */
import type { ReactNode } from "react";
import { Providers } from "./providers.tsx";

export const metadata = { title: "Tasks" };

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>
        <Providers>{children}</Providers>
      </body>
    </html>
  );
}
