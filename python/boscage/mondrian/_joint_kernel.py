"""Which trees the joint posterior adds up."""

from __future__ import annotations

from typing import Any

from boscage import _validation

__all__: list[str] = []


def check_joint_kernel(forest: Any) -> str:
    """The parameter ``joint_kernel`` of a forest, checked beside those that it needs."""
    kernel = _validation.check_choice(
        "joint_kernel", forest.joint_kernel, ("auto", "trees", "limit")
    )
    if kernel == "limit":
        needed = {"posterior": "joint", "predictive": "averaged"}
        for name, value in needed.items():
            if (found := getattr(forest, name)) != value:
                raise ValueError(
                    f"joint_kernel='limit' needs {name}={value!r} (found {found!r}); leave it at "
                    "'auto'"
                )
    return kernel
