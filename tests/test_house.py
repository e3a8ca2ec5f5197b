"""The house: what the documentation draws and lists is what the code is."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
grimp = pytest.importorskip("grimp", reason="import-linter is no part of the oldest environment")


def script(name):
    """A script of docs/figures as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "figures" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_layers_point_one_way_and_the_picture_is_current():
    layers = script("make_layers")
    names = layers.layers()
    found = layers.imports(names)
    assert all(names.index(used) < names.index(user) for user, used in found)
    picture = (ROOT / "docs" / "figures" / "layers.svg").read_text(encoding="utf-8")
    assert layers.description(found) in picture, "run make figures"
    assert set(re.findall(r">([a-z]+)</text>", picture)) >= set(names)


def test_no_module_imports_the_package_itself():
    """Its names are for users; inside, that would make a cycle of all layers."""
    graph = grimp.build_graph("lnml", exclude_type_checking_imports=False)
    assert not graph.find_modules_that_directly_import("lnml")


def test_tables_of_methods_are_current():
    tables = script("make_tables")
    for path in tables.BLOCKS:
        assert (ROOT / path).read_text(encoding="utf-8") == tables.written(path), "run make figures"


def test_files_and_functions_are_short():
    """As CONTRIBUTING.md asks: files below 400 lines, functions of 60 at most."""
    import ast

    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") < 400, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__init__"):
                documented = ast.get_docstring(node, clean=False) or ""
                length = node.end_lineno - node.lineno + 1 - documented.count("\n")
                assert length <= 60, f"{path}: {node.name} has {length} lines"
