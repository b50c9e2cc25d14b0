"""Every exportable member exports, and the program gives what the module gives."""

import pytest
import torch

from .members import ASSEMBLIES, Assembly, Sizes
from .test_compile import setup


@pytest.mark.parametrize("assembly", ASSEMBLIES, ids=str)
def test_exported_is_eager(assembly):
    module, given = setup(assembly)
    with torch.no_grad():
        program = torch.export.export(module, given)
        torch.testing.assert_close(program.module()(*given), module(*given))
        other = assembly.inputs(assembly.sizes(Sizes(queries=2)), seed=11)
        given = (other.query, other.keys, other.values, other.mask)
        torch.testing.assert_close(program.module()(*given), module(*given))


@pytest.mark.parametrize("assembly", [Assembly("score", "additive"), Assembly("selection", "linear_chain")], ids=str)
def test_export_with_any_number_of_keys(assembly):
    module, given = setup(assembly)
    keys = torch.export.Dim("keys", min=2, max=1024)
    shapes = (None, {1: keys}, {1: keys}, {2: keys})
    program = torch.export.export(module, given, dynamic_shapes=shapes)
    other = assembly.inputs(Sizes(queries=2, keys=19), seed=11)
    given = (other.query, other.keys, other.values, other.mask)
    torch.testing.assert_close(program.module()(*given), module(*given))
