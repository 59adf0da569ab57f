/** Templates of the Dockerfile and the compose file. */
import { VERSION } from "../../config/version.ts";
import type { Installed } from "./program.ts";

const HEALTH =
  `node -e "fetch('http://127.0.0.1:3210/api/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"`;
const HEALTH_OF_FILE =
  `bash -c 'exec 3<>/dev/tcp/127.0.0.1/3210 && printf "GET /api/health HTTP/1.0\\r\\n\\r\\n" >&3 && grep -q "200 OK" <&3'`;

export function dockerfileText({ kind }: Installed): string {
  const isPackage = kind === "npm";
  const base = isPackage
    ? `FROM node:22-slim
RUN npm install --global --no-audit --no-fund syncline@${VERSION} && install -d -o node -g node /data
USER node
`
    : `# Expects the single-file server in this folder: "deno task build:single" builds it as dist/syncline.
FROM debian:stable-slim
COPY syncline /usr/local/bin/syncline
RUN useradd --create-home syncline && install -d -o syncline -g syncline /data
USER syncline
`;
  return `${base}ENV DENO_TOKIO_EVENT_INTERVAL=1 XDG_CACHE_HOME=/tmp/cache SYNCLINE_CACHE_DIR=/tmp/cache
WORKDIR /data
VOLUME /data
EXPOSE 3210
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ${isPackage ? HEALTH : HEALTH_OF_FILE}
ENTRYPOINT ["syncline"]
CMD ["serve", "--host", "0.0.0.0", "--data", "/data", "--restart-exit-code", "75"]
`;
}

export function composeText({ publicUrl }: { readonly publicUrl: string | null }): string {
  const environment = publicUrl === null
    ? `    # Behind a proxy, name the host that browsers ask for. Other containers ask for "syncline".
    environment:
      SYNCLINE_ALLOW_HOST: syncline
`
    : `    environment:
      SYNCLINE_ALLOW_HOST: syncline
      SYNCLINE_PUBLIC_URL: ${JSON.stringify(publicUrl)}
`;
  return `services:
  syncline:
    build: .
    restart: unless-stopped
    init: true
    stop_grace_period: 20s
    ports:
      - "127.0.0.1:3210:3210"
    volumes:
      - data:/data
${environment}    read_only: true
    tmpfs:
      - /tmp:exec
    cap_drop:
      - ALL
    security_opt:
      - no-new-privileges:true
    ulimits:
      nofile: 65536

volumes:
  data:
`;
}
