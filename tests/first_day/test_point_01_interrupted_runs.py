"""An interrupted run is usable: its best checkpoint is loaded, and the user is told."""

import warnings


def test_a_run_without_a_final_model_predicts(train, call, work) -> None:
    assert train()[0] == 0
    (work / "run" / "model.safetensors").unlink()
    (work / "run" / "checksums.json").unlink()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        code, out, err = call("predict", "run", given="bado\n")
    assert (code, out.count("\n")) == (0, 1), err
    assert any("checkpoint" in str(warning.message) for warning in told)
