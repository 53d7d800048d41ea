"""The packages of ONNX, which are an extra."""

from __future__ import annotations

from typing import Any

from spaql.errors import MissingExtraError


def onnx_module() -> Any:
    """Return the package onnx; raises `MissingExtraError` if it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError("ONNX models need onnx: pip install 'spaql[onnx]'.") from error
    return onnx


def runtime_module() -> Any:
    """Return the package onnxruntime; raises `MissingExtraError` if it is not installed."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(
            "The equivalence check needs onnxruntime: pip install 'spaql[onnx]'."
        ) from error
    return onnxruntime
