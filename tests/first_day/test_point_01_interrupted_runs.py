"""An interrupted run is usable: its best checkpoint is loaded, and the user is told."""


def test_a_run_without_a_final_model_predicts(train, call, work) -> None:
    assert train()[0] == 0
    (work / "run" / "model.safetensors").unlink()
    (work / "run" / "checksums.json").unlink()
    code, out, err = call("predict", "run", given="bado\n")
    assert (code, out.count("\n")) == (0, 1), err
    assert err.startswith("WARNING: run: training was interrupted")
    assert "UserWarning" not in err
