"""Models in formats that other programs run: ONNX and PyTorch's torch.export. Each carries the model's description and its privacy statement.

`python -m tsdp.formats MODEL OUTPUT --format onnx` is what `tsdp-export --format onnx` calls.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import warnings
from typing import Any

import torch
from torch import Tensor

from .archive import Archive, read_archive
from .errors import DataError, Error, UsageError, no_package
from .mixture import Forecaster
from .rebuilt import forecaster_of

FORMATS = ("onnx", "torch_export")
_PATHS = 3  # of the example that an export is traced with
_OPSET = 20


class Exported(torch.nn.Module):
    """(past_target (B, P), past_observed (B, P), levels (A)) -> quantiles (B, A, H) and means (B, H), for P = past_length of the model. A model that
    reads time features is also told them, (B, P + H, F). One that is mixed with forecasts of other programs is also given these, `external`
    (B, J + 1, E, 10, H), NaN where not known (tsdp.mixture.Forecaster). One that forecasts by sampling is also given draws (B, S, H, 2), uniform in (0, 1], and
    gives its sample paths (B, S, H), too. Rows of one that forecasts the variables of a series together are side by side, in the order of `variables`."""

    def __init__(self, forecaster: Forecaster) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.forecaster = forecaster
        self.reads_features = forecaster.network.reads_time_features

    def forward(self, past_target: Tensor, past_observed: Tensor, levels: Tensor, *more: Tensor) -> tuple[Tensor, ...]:
        given = list(more)
        features = given.pop(0) if self.reads_features else None
        draws = given.pop(0) if self.forecaster.from_samples else None
        external = given.pop(0) if self.forecaster.external else None
        found = self.forecaster(past_target, past_observed, levels, features, draws, external)
        return tuple(part for part in found if part is not None)


def _traced(archive: Archive, path: str) -> tuple[torch.export.ExportedProgram, list[str], list[str]]:
    """The program of a model, and the names of what it is given and gives."""
    features = int(archive.about.get("sizes", {}).get("time_features", 0))
    forecaster = forecaster_of(archive, path)
    forecaster.at_a_time = max(1, forecaster.windows)
    network, past = forecaster.network, forecaster.past_length
    levels, paths = torch.export.Dim("levels"), torch.export.Dim("paths")
    batch = torch.export.Dim("batch") if network.variables == 1 else network.variables * torch.export.Dim("batch")
    rows = 2 * network.variables
    stream = torch.Generator().manual_seed(1)

    def made(*shape: int) -> Tensor:
        return 1.0 - torch.rand(shape, generator=stream)

    given: dict[str, tuple[Tensor, dict[int, Any]]] = {
        "past_target": (made(rows, past), {0: batch}),
        "past_observed": (torch.ones(rows, past), {0: batch}),
        "levels": (torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64), {0: levels}),
    }
    if network.reads_time_features:
        given["time_features"] = (made(rows, past + network.prediction_length, features), {0: batch})
    if forecaster.from_samples:
        given["draws"] = (made(rows, _PATHS, network.prediction_length, 2), {0: batch, 1: paths})
    if forecaster.external:
        shape = (forecaster.windows + 1, len(forecaster.external), 10, network.prediction_length)
        given["external"] = (made(rows, *shape), {0: batch})
    axes = [axes for _, axes in given.values()]
    shapes = (*axes[:3], tuple(axes[3:])) if axes[3:] else tuple(axes)
    program = torch.export.export(
        Exported(forecaster).eval(), tuple(example for example, _ in given.values()), dynamic_shapes=shapes, strict=False
    )
    return program, list(given), ["quantiles", "means", "samples"][: 3 if forecaster.from_samples else 2]


def export(model: str | os.PathLike[str], output: str | os.PathLike[str], format: str) -> None:
    """Writes the model of a `model.pt` to `output` as "onnx" or "torch_export". Raises DataError for a file that is no such model, UsageError for
    another format, ImportError without the packages onnx and onnxscript where they are needed."""
    path, target = os.fspath(model), os.fspath(output)
    if format not in FORMATS:
        raise UsageError(f"format: found {format}; expected one of {', '.join(FORMATS)}")
    archive = read_archive(path)
    if not os.path.isdir(os.path.dirname(os.path.abspath(target))):
        raise UsageError(f"output: found {target}, in a folder that is not there; expected a file in one that is")
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(target))) as folder:
        part = os.path.join(folder, "part.pt2")
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program, names, results = _traced(archive, path)
            if format == "torch_export":
                torch.export.save(program, part, extra_files={**archive.texts, "inputs": " ".join(names), "outputs": " ".join(results)})
            else:
                _write_onnx(program, names, results, archive.texts, part)
        os.replace(part, target)


def _write_onnx(program: torch.export.ExportedProgram, names: list[str], results: list[str], texts: dict[str, str], file: str) -> None:
    try:
        import onnx
        import onnxscript  # noqa: F401
    except ImportError:
        raise no_package("onnx", "models in that format need, beside onnxscript") from None
    found = torch.onnx.export(program, input_names=names, output_names=results, opset_version=_OPSET, dynamo=True, verbose=False, optimize=False)
    assert found is not None
    model = found.model_proto
    for key, text in texts.items():
        model.metadata_props.add(key=key, value=text)
    onnx.checker.check_model(model)
    onnx.save_model(model, file)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tsdp.formats", description="Writes a model.pt in another format.")
    parser.add_argument("model")
    parser.add_argument("output")
    parser.add_argument("--format", choices=FORMATS, required=True)
    given = parser.parse_args()
    gc.disable()  # a traced graph is hundreds of thousands of objects, which the collector would look through again and again
    try:
        export(given.model, given.output, given.format)
    except (Error, ImportError, OSError) as error:
        print(error, file=sys.stderr)
        return 3 if isinstance(error, DataError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
