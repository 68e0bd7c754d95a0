# syntax=docker/dockerfile:1
# The same scripts as on any machine, in two images:
#   docker build --target cpu -t tsdp .            docker run --rm -v "$PWD:/data" tsdp --config my.yaml --output run
#   docker build --target cuda -t tsdp:cuda .      docker run --rm --gpus all -v "$PWD:/data" tsdp:cuda --config my.yaml

# The toolkit to build with comes with the wheels, so the small base image does.
FROM nvidia/cuda:13.0.2-base-ubuntu24.04 AS cuda
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
  && rm -rf /var/lib/apt/lists/*
# No driver is there while an image is built, so the choice is made here.
ENV TSDP_TORCH=cuda
WORKDIR /opt/tsdp
COPY scripts scripts
RUN scripts/setup.sh torch && rm -rf /var/lib/apt/lists/* /root/.cache
COPY . .
RUN scripts/setup.sh programs && rm -rf /root/.cache
WORKDIR /data
ENTRYPOINT ["/opt/tsdp/build/release/bin/tsdp-train"]

# Last, and so the one that a plain `docker build .` makes.
FROM debian:12-slim AS cpu
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
  && rm -rf /var/lib/apt/lists/*
ENV TSDP_TORCH=cpu
WORKDIR /opt/tsdp
COPY scripts scripts
RUN scripts/setup.sh torch && rm -rf /var/lib/apt/lists/* /root/.cache
COPY . .
RUN scripts/setup.sh programs && rm -rf /root/.cache
WORKDIR /data
ENTRYPOINT ["/opt/tsdp/build/release/bin/tsdp-train"]
