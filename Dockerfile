# syntax=docker/dockerfile:1
# tsdp as its wheels, in an image of Python alone: no compiler, no checkout.
#   docker build -t tsdp .                                docker run --rm -v "$PWD:/data" tsdp --config my.yaml --output run
#   docker build --build-arg TORCH=cuda -t tsdp:cuda .    docker run --rm --gpus all -v "$PWD:/data" tsdp:cuda --config my.yaml --output run
# Other programs: docker run --rm -v "$PWD:/data" --entrypoint tsdp-forecast tsdp --model run/model.pt …
ARG TORCH=cpu

FROM debian:12-slim AS wheels
ARG TORCH
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
  && rm -rf /var/lib/apt/lists/*
# No driver is there while an image is built, so which torch is said here.
ENV TSDP_TORCH=$TORCH
WORKDIR /opt/tsdp
COPY scripts scripts
# The build of torch for CPUs goes beside the wheels: by its name alone pip would take the one for CUDA.
RUN scripts/setup.sh torch && rm -rf /var/lib/apt/lists/* /root/.cache && mkdir /dist \
  && if [ "$TORCH" = cpu ]; then \
    bash -c '. scripts/common.sh && .venv/bin/python3 -m pip download --no-deps --dest /dist --extra-index-url "$tsdp_torch_index" "torch==$(tsdp_pin torch)+cpu"'; \
  fi
COPY . .
RUN scripts/wheels.sh /dist

# The Python of the stage above, and its C library, which the wheels need at least.
FROM python:3.11-slim-bookworm
RUN --mount=type=bind,from=wheels,source=/dist,target=/dist \
  pip install --no-cache-dir --find-links /dist /dist/tsdp_account-*.whl /dist/tsdp-*.whl
# What the container runtime of NVIDIA asks for; without it, they mean nothing.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /data
ENTRYPOINT ["tsdp-train"]
