"""Made-up records are learned from the command line: long tables and JSONL, evaluate, predict, explain, export."""

import csv
import json
import random

import pytest

import saccade
from saccade.cli import main

CODES = ["cough", "fever", "rash", "fall", "pain"]


def patient(chance: random.Random, number: int) -> dict:
    """A patient falls ill if fever follows cough; the other codes say nothing."""
    days, visits = 0, []
    for _ in range(chance.randint(2, 5)):
        days += chance.randint(1, 90)
        codes = dict.fromkeys(chance.sample(CODES[2:], chance.randint(0, 2)))
        visits.append({"time": days, "codes": codes})
    ill = number % 2 == 0
    if ill:
        visits[0]["codes"]["cough"] = None
        visits[-1]["codes"]["fever"] = round(38 + chance.random(), 1)
    return {
        "patient": f"p{number}",
        "record": {"visits": visits, "static": {"sex": chance.choice("FM"), "age": chance.randint(20, 80)}},
        "label": "ill" if ill else "well",
    }


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("patients")
    chance = random.Random(3)
    patients = [patient(chance, number) for number in range(130)]
    for name, part in (("train", patients[:90]), ("valid", patients[90:110]), ("test", patients[110:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in part))
        rows = []
        for each in part:
            shared = {"patient": each["patient"], "outcome": each["label"]}
            static = each["record"]["static"]
            rows += [{**shared, "code": key, "value": value, "time": ""} for key, value in static.items()]
            for visit in each["record"]["visits"]:
                rows.append({**shared, "time": visit["time"], "code": "", "value": ""})
                rows += [
                    {**shared, "time": visit["time"], "code": code, "value": "" if value is None else value}
                    for code, value in visit["codes"].items()
                ]
        chance.shuffle(rows)  # the rows of a patient may be anywhere
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["patient", "time", "code", "value", "outcome"])
            writer.writeheader()
            writer.writerows(rows)
    return folder


def trained(work, name: str, *given: str, config: str = "patients/retain") -> str:
    sizes = [] if config == "patients/logistic" else ["--model.embedding_dim", "11", "--model.hidden_dim", "13"]
    steps = ["--trainer.max_steps", "60", "--trainer.learning_rate", "0.03", "--trainer.validate_every", "30"]
    steps += ["--trainer.batch_tokens", "150", "--task.label.positive", "ill"]
    assert main(["train", config, *given, *sizes, *steps, "--output", str(work / name)]) == 0
    return str(work / name)


@pytest.fixture(scope="module")
def run(work):
    data = ["--data.train", str(work / "train.jsonl"), "--data.valid", str(work / "valid.jsonl")]
    return trained(work, "run", *data)


def call(capsys, *arguments):
    capsys.readouterr()
    try:
        code = main(arguments)
    except SystemExit as leave:
        code = int(leave.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_evaluate_with_intervals_and_a_threshold(work, run, capsys):
    asked = ["--metrics", "auroc,auprc,sensitivity,specificity", "--bootstrap", "50", "--json"]
    plot = work / "reliability.png"
    code, out, _ = call(
        capsys, "evaluate", run, "--data", str(work / "test.jsonl"), *asked, "--threshold", "0.3", "--plot", str(plot)
    )
    assert code == 0
    found = json.loads(out)
    assert found["figures"]["auroc"] >= 95.0
    low, high = found["intervals"]["auroc"]
    assert low <= found["figures"]["auroc"] <= high
    assert plot.stat().st_size > 1000
    code, out, _ = call(capsys, "evaluate", run, "--data", str(work / "test.jsonl"), "--bootstrap", "20")
    assert code == 0
    assert "auroc" in out
    assert "[" in out


def test_a_long_table_is_read_as_the_records_are(work, run, capsys):
    layout = ["--data.group", "patient", "--data.columns", "record=time+code+value,label=outcome"]
    data = ["--data.train", str(work / "train.csv"), "--data.valid", str(work / "valid.csv")]
    long = trained(work, "long", *data, *layout)
    nested, table = saccade.load(run).task, saccade.load(long).task
    assert table.inputs["record"].book.names == nested.inputs["record"].book.names
    assert table.inputs["record"].book.scales["fever"] == pytest.approx(nested.inputs["record"].book.scales["fever"])
    assert table.inputs["record"].static.names == nested.inputs["record"].static.names
    code, out, _ = call(capsys, "evaluate", long, "--data", str(work / "test.csv"), "--json")
    assert (code, json.loads(out)["examples"]) == (0, 20)
    code, out, _ = call(capsys, "predict", long, str(work / "test.csv"), "--format", "jsonl")
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, len(answers)) == (0, 20)
    assert all(each["input"].startswith("p1") for each in answers)  # which patient it is
    code, _, err = call(capsys, "predict", long, "--data", str(work / "test.csv"), "--output", str(work / "bulk"))
    assert code != 0
    assert "cannot be read in parts" in err


@pytest.mark.parametrize("overlap", [0, 3])
def test_patients_in_both_files_are_told_in_nested_files_too(work, capsys, overlap):
    training, validating = ((work / f"{name}.jsonl").read_text().splitlines() for name in ("train", "valid"))
    (work / "mixed.jsonl").write_text("\n".join([*training[:overlap], *validating]) + "\n")
    data = ["--data.train", str(work / "train.jsonl"), "--data.valid", str(work / "mixed.jsonl")]
    capsys.readouterr()
    trained(work, f"mixed-{overlap}", *data, "--data.group", "patient", "--trainer.max_steps", "1")
    said = "".join(capsys.readouterr())
    warning = "WARNING: 3 of the 23 different values of 'patient' in the validation data are also in the training data"
    assert (warning in said) == bool(overlap)
    assert ("in the training data" in said) == bool(overlap)


def test_predict_and_explain(work, run, capsys):
    record = json.dumps([["cough"], ["rash"], {"codes": {"fever": 38.9, "martian": None}}])
    code, out, err = call(capsys, "predict", run, "--input", record, "--format", "jsonl")
    assert (code, json.loads(out)["answer"]) == (0, "ill")
    assert json.loads(out)["keys"] == ["visit 1", "visit 2", "visit 3"]
    assert "martian" in err
    code, out, _ = call(capsys, "explain", run, "--input", record, "--format", "json")
    shown = json.loads(out)["items"][0]
    found = shown["maps"][0]["contributions"][0]
    place = found["outcomes"].index("ill")
    total = found["bias"][place] + sum(code[place] for visit in found["codes"] for code in visit)
    probability = next(each["probability"] for each in shown["outcomes"] if each["label"] == "ill")
    assert 1 / (1 + 2.718281828459045**-total) == pytest.approx(probability, abs=1e-5)
    assert found["codes"][2][1] == [0.0, 0.0]  # an unknown code adds nothing
    code, out, _ = call(capsys, "explain", run, "--input", record, "--format", "text")
    assert code == 0
    assert "contributions to ill" in out
    assert "fever" in out


def test_logistic_regression_explains_itself(work, capsys):
    data = ["--data.train", str(work / "train.jsonl"), "--data.valid", str(work / "valid.jsonl")]
    bag = trained(work, "bag", *data, config="patients/logistic")
    code, out, _ = call(capsys, "explain", bag, "--input", '[["cough"], ["fever", "rash"]]', "--format", "json")
    assert code == 0
    shown = json.loads(out)["items"][0]["maps"][0]
    assert shown["name"] == "contributions"
    assert sum(shown["weights"][0][0]) == pytest.approx(1.0)
    code, _, _ = call(capsys, "export", bag, "--format", "onnx", "--output", str(work / "out"))
    assert code == 0
    assert (work / "out" / "export.json").is_file()


def test_outcomes_at_each_visit(work, capsys):
    lines = [json.loads(line) for line in (work / "train.jsonl").read_text().splitlines()]
    rows = []
    for each in lines:
        visits = each["record"]["visits"]
        after = [sorted(visit["codes"]) for visit in visits[1:]]
        rows.append({"record": each["record"], "label": [*after, None]})
    (work / "next.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    steps = ["--trainer.max_steps", "20", "--trainer.validate_every", "10", "--trainer.batch_tokens", "150"]
    sizes = ["--model.embedding_dim", "11", "--model.hidden_dim", "13", "--task.label", "visit_labels"]
    out = str(work / "next")
    assert (
        main(["train", "patients/retain", "--data.train", str(work / "next.jsonl"), *steps, *sizes, "--output", out])
        == 0
    )
    asked = ["--metrics", "auroc,auprc,micro_f1,ece", "--bootstrap", "10", "--json"]
    code, text, _ = call(capsys, "evaluate", out, "--data", str(work / "next.jsonl"), *asked)
    found = json.loads(text)
    assert (code, set(found["intervals"])) == (0, {"auroc", "auprc", "micro_f1", "ece"})
    record = json.dumps([["cough"], ["rash"], ["fall", "pain"]])
    code, text, _ = call(capsys, "predict", out, "--input", record, "--format", "jsonl")
    answer = json.loads(text)
    assert (code, len(answer["answer"]), len(answer["probabilities"])) == (0, 3, 3)
    assert len(answer["weights"]) == 3
    assert answer["weights"][0][1:] == [0.0, 0.0]
    code, text, _ = call(capsys, "explain", out, "--input", record, "--format", "json")
    shown = json.loads(text)["items"][0]["maps"][0]
    assert (code, len(shown["contributions"])) == (0, 3)
    assert shown["contributions"][0]["codes"][2] == [[0.0] * 4] * 2  # nothing of later visits


def test_names_that_give_away_the_outcome_are_warned_about(work, capsys):
    rows = [json.loads(line) for line in (work / "train.jsonl").read_text().splitlines()]
    for row in rows:
        row["record"]["visits"][-1]["codes"] |= {"Ill": None, "Label": None}
    (work / "leak.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    steps = ["--trainer.max_steps", "1", "--trainer.validate_every", "1", "--output", str(work / "leak")]
    code, _, err = call(capsys, "train", "patients/logistic", "--data.train", str(work / "leak.jsonl"), *steps)
    assert code == 0
    assert "the code 'Ill' is named like the outcome 'ill'" in err
    assert "the code 'Label' is named like the outcome 'label'" in err


def test_serve(run):
    pytest.importorskip("fastapi_offline", reason="needs the extra serve")
    from fastapi.testclient import TestClient

    from saccade.serving.app import make_app

    record = {"visits": [["cough"], {"codes": {"fever": 38.7}}], "static": {"sex": "F"}}
    with TestClient(make_app({"patients": run}), "http://localhost") as client:
        found = client.post("/predict", json={"inputs": [record, [["rash"]]], "options": {"threshold": 0.4}}).json()
        assert [each["answer"] for each in found["predictions"]] == ["ill", "well"]
        shown = client.post("/explain", json={"input": record, "format": "json"}).json()["items"][0]["maps"][0]
        assert shown["contributions"][0]["outcomes"] == ["ill", "well"]
        page = client.post("/explain", json={"input": record, "format": "html"}).text
        assert '"contributions":[{"outcomes":["ill","well"]' in page
        wrong = client.post("/predict", json={"inputs": [[["rash"]], "rash"]})
        assert wrong.status_code == 422
        assert "inputs[1]" in wrong.text
