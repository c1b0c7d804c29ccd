"""What registers by being there: the modules of a folder, and the classes that they define."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def modules_in(package: str) -> Iterator[ModuleType]:
    """Import every module of a package, in the order of the alphabet, and yield it. Folders in it are left out."""
    for file in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if not file.ispkg:
            yield importlib.import_module(f"{package}.{file.name}")


def classes_in(package: str, base: type = object) -> Iterator[Any]:
    """Yield every class of a kind that a module of a package defines, by module and name."""
    for module in modules_in(package):
        for _, kind in sorted(vars(module).items()):
            if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__:
                yield kind
