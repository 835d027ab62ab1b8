# The image of every Fairlead program: Node, the libraries that it needs, the bundle, and nothing
# else: no shell, no package manager, no file that its user could change. Runs with a read-only
# root; the sidecar's state goes to a mounted volume.
#
#   docker build -t fairlead .

FROM node:24-bookworm-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build
# The libraries that the dynamic linker names, under their own paths, on any architecture.
RUN mkdir -p /libraries \
 && for library in $(ldd /usr/local/bin/node | grep -o '/[^ ]*'); do \
      cp -L --parents "$library" /libraries; \
    done

FROM scratch
COPY --from=build /libraries/ /
COPY --from=build /usr/local/bin/node /usr/bin/node
# Node brings its own roots; these count with NODE_OPTIONS=--use-system-ca, or replaced by a mount.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY container/etc/ /etc/
COPY --from=build /src/dist/ /app/
COPY LICENSE /app/
# An id that no other image uses: the sidecar tells its callers apart by their user ids, and
# nothing else in the pod may pass for it.
USER 64731:64731
# A small young generation: one sidecar runs beside every agent, and memory that V8 keeps for
# bursts is paid for in each pod.
ENTRYPOINT ["/usr/bin/node", "--max-semi-space-size=1", "/app/fairlead.js"]
