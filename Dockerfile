# rollout in an image: `docker build -t rollout .`, then `docker run --init -v rollout:/data rollout coordinator run`.
# Start it with --init: what user code leaves behind needs somebody to reap it.
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY . .
RUN npm ci --no-audit --no-fund
RUN mkdir -p out && npm pack --pack-destination out

FROM node:24-bookworm-slim
WORKDIR /opt/rollout
COPY --from=build /src/out/ .
RUN npm install --no-audit --no-fund --omit=dev ./rollout-*.tgz && rm ./rollout-*.tgz
ENV PATH=/opt/rollout/node_modules/.bin:$PATH
WORKDIR /data
VOLUME /data
USER node
EXPOSE 50051
ENTRYPOINT ["rollout"]
CMD ["--help"]
