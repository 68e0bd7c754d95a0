"""Three sites on this machine, whose messages Flower's simulation engine carries:

    simulate.py --bin build/release/bin --config sites.yaml --output runs/sites [--set KEY=VALUE …]

`dataset.path` of the configuration has {rank} in it (docs/distributed.md).
"""

import argparse
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RANKS = 3


def simulate(folder: str) -> None:
    """In a process of its own, since it takes its processes along when it ends."""
    from flwr.simulation import run_simulation

    sys.path.insert(0, str(HERE))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    os.chdir(folder)
    import coordinator
    import site_app

    resources = {"client_resources": {"num_cpus": 0.5, "num_gpus": 0.0}, "init_args": {"num_cpus": 1}}
    run_simulation(coordinator.app, site_app.app, num_supernodes=RANKS - 1, backend_config=resources)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--config", required=True, type=pathlib.Path)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tsdp") as folder:
        sockets = [os.path.join(folder, f"rank{rank}.sock") for rank in range(RANKS)]
        key = pathlib.Path(folder, "sampling.key")
        key.touch(mode=0o600)
        key.write_text(secrets.token_hex(32))
        settings = [word for setting in options.set for word in ("--set", setting)]
        command = [options.bin / "tsdp-train", "--config", options.config, "--output", options.output, "--sampling-key", key, "--threads", "1", *settings]
        ranks = [
            subprocess.Popen([*command, "--relay", sockets[rank]], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS)}) for rank in range(RANKS)
        ]
        processes = [*ranks, subprocess.Popen([sys.executable, __file__, "--simulate", folder])]
        while any(process.poll() is None for process in processes):
            failed = next((process for process in processes if process.poll()), None)
            if failed is not None:
                time.sleep(10)  # in which the others hear of it
                for process in processes:
                    process.kill()
                return abs(failed.returncode)
            time.sleep(0.2)
        return next((abs(process.returncode) for process in processes if process.returncode), 0)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--simulate":
        simulate(sys.argv[2])
    else:
        sys.exit(main())
