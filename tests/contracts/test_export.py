"""Every exportable member exports, and the program gives what the module gives."""

import pytest
import torch

from .members import ASSEMBLIES, Assembly, Sizes
from .test_compile import setup

NOT_EXPORTABLE: dict[str, str] = {
    "selection:linear_chain": "its marginals are a gradient, which cannot be traced",
}
"""Members that cannot be exported, and why."""


def test_members_that_are_not_exportable_exist():
    assert set(NOT_EXPORTABLE) <= {str(assembly) for assembly in ASSEMBLIES}


@pytest.mark.parametrize("assembly", ASSEMBLIES, ids=str)
def test_exported_is_eager(assembly):
    module, given = setup(assembly)
    if str(assembly) in NOT_EXPORTABLE:
        with pytest.raises(NotImplementedError, match=NOT_EXPORTABLE[str(assembly)]):
            torch.export.export(module, given)
        return
    with torch.no_grad():
        program = torch.export.export(module, given)
        torch.testing.assert_close(program.module()(*given), module(*given))
        other = assembly.inputs(assembly.sizes(Sizes(queries=2)), seed=11)
        given = (other.query, other.keys, other.values, other.mask)
        torch.testing.assert_close(program.module()(*given), module(*given))


def test_export_with_any_number_of_keys():
    module, given = setup(Assembly("score", "additive"))
    keys = torch.export.Dim("keys", min=2, max=1024)
    shapes = (None, {1: keys}, {1: keys}, {2: keys})
    program = torch.export.export(module, given, dynamic_shapes=shapes)
    other = Assembly("score", "additive").inputs(Sizes(queries=2, keys=19), seed=11)
    given = (other.query, other.keys, other.values, other.mask)
    torch.testing.assert_close(program.module()(*given), module(*given))
