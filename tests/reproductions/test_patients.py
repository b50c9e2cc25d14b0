"""The command at toy scale, and the records that it makes of the files."""

import gzip
import json
import zipfile

import pytest

from reproductions.patients import counts, records
from tests.reproductions.scripts import script

patients = script("patients")


def test_models_are_trained_and_measured(tmp_path, monkeypatch) -> None:
    for name in ("UCI_DIABETES", "SYNTHEA"):
        monkeypatch.delenv(name, raising=False)
    output = tmp_path / "results"
    given = ["--runs", str(tmp_path / "runs"), "--output", str(output), "--steps", "2", "--records", "60"]
    pytest.importorskip("sklearn")
    assert patients.main([*given, "--models", "retain", "logistic", "scikit-learn", "--bootstrap", "5"]) == 0
    found = json.loads((output / "results.json").read_text())["simulated"]
    assert set(found) == {"retain", "logistic", "scikit-learn"}
    for result in found.values():
        low, high = result["figures"]["auroc"]["interval"]
        assert 0 <= low <= result["figures"]["auroc"]["value"] <= high <= 100
    assert -1 <= found["retain"]["correlation"]["all"] <= 1
    assert len((output / "table.md").read_text().splitlines()) == 5


def test_each_of_several_outcomes_has_a_regression_of_its_own(tmp_path) -> None:
    pytest.importorskip("sklearn")
    each = [{"record": [["a"], ["b"]], "label": [["x"], ["x", "y"]]}, {"record": [["c"], ["b"]], "label": [[], ["y"]]}]
    files = records.write(7 * each, tmp_path, {"class": "visit_labels"})
    figures = counts.fitted(files.paths, 5)["figures"]
    assert figures["auroc"]["value"] == pytest.approx(100.0)
    assert figures["auprc"]["value"] == pytest.approx(100.0)


def test_made_up_risk_is_the_sum_of_its_parts() -> None:
    for each in records.simulated(20):
        together = sum(map(sum, each["truth"]))
        meet = [set(visit) >= {"code 0", "code 1"} for visit in each["record"]]
        fading = [records.DECAY ** (len(meet) - 1 - place) for place in range(len(meet))]
        more = sum(records.INTERACTION * fade for fade, yes in zip(fading, meet, strict=True) if yes)
        assert each["score"] == pytest.approx(together + more)


def test_stays_of_a_patient_are_in_order(tmp_path) -> None:
    names = ["encounter_id", "patient_nbr", "race", "gender", *records.NAMES, *records.NUMBERS]
    names += ["diag_1", "diag_2", "diag_3", "metformin", "insulin", "change", "readmitted"]
    stay = dict.fromkeys(names, "?") | dict.fromkeys(records.NUMBERS, "3") | {"patient_nbr": "7", "gender": "Female"}
    rows = [
        stay | {"encounter_id": "12", "readmitted": "<30", "diag_1": "250.83", "insulin": "Up", "metformin": "No"},
        stay | {"encounter_id": "4", "readmitted": ">30", "diag_1": "428", "diag_2": "250.1"},
        stay | {"encounter_id": "30", "readmitted": "NO", "discharge_disposition_id": "11"},
    ]
    table = "\n".join([",".join(names), *(",".join(row[name] for name in names) for row in rows)])
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("dataset_diabetes/diabetic_data.csv", table)
    (found,) = records.diabetes(tmp_path / "d.zip")
    assert found["label"] == ["no", "yes", None]
    first, second, _ = (visit["codes"] for visit in found["record"]["visits"])
    assert {"ICD-9 428", "ICD-9 250", "first 428", "number_inpatient"} <= set(first)
    assert "insulin Up" in second
    assert "metformin No" not in second
    assert found["record"]["static"] == {"gender": "Female"}


def test_outcomes_of_synthetic_patients(tmp_path) -> None:
    def written(name: str, lines: list[str]) -> None:
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as file:
            file.write("\n".join(lines))

    people = [
        "ID,BIRTHDATE,DEATHDATE,MARITAL,RACE,GENDER",
        "a,1950-01-01,2018-06-01,M,white,F",
        "b,1960-01-01,,,asian,M",
    ]
    written("patients", people)
    rows = [
        "START,PATIENT,DESCRIPTION",
        "2010-01-01,a,flu",
        "2018-01-01,a,gout",
        "2009-05-05,b,flu",
        "2018-12-31,b,gout",
    ]
    written("conditions", rows)
    written("medications", ["START,PATIENT,DESCRIPTION", "2018-01-01T10:00:00Z,a,aspirin"])
    found = records.synthea(tmp_path)
    assert [each["label"] for each in records.mortality(found)] == [["no", "yes"], ["no", None]]
    after = list(records.next_diagnoses(found, least=2))
    assert [each["label"] for each in after] == [[["gout"], None], [["gout"], None]]
    last = after[0]["record"]["visits"][1]
    assert (last["time"], list(last["codes"])) == ("2018-01-01", ["age", "gout", "aspirin"])
    assert after[0]["record"]["static"] == {"gender": "F", "race": "white", "marital": "M"}


def test_missing_files_are_named(tmp_path, capsys, monkeypatch) -> None:
    for name in ("UCI_DIABETES", "SYNTHEA"):
        monkeypatch.delenv(name, raising=False)
    assert patients.main(["--only", "diabetes", "--output", str(tmp_path), "--runs", str(tmp_path)]) == 0
    assert "needs --diabetes" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"no\.zip"):
        patients.main(["--only", "diabetes", "--diabetes", "no.zip", "--runs", str(tmp_path)])
