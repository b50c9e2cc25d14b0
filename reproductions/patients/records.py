"""Records of visits: made up with known effects, of the UCI diabetes data, and of Synthea's patients."""

import csv
import gzip
import io
import json
import math
import random
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

SPLITS = {"train": 0.7, "valid": 0.1, "test": 0.2}
CODES, DECAY, INTERACTION = 30, 0.7, 1.5
"""Of made-up records: the number of codes, how an effect fades from visit to visit, and one that needs two codes."""
GONE = {"11", "13", "14", "19", "20", "21"}
"""Discharges to a hospice, and deaths: these patients cannot come back."""
MISSING = {"", "?", "None", "No"}
NUMBERS = [
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
]
NAMES = [
    "age",
    "admission_type_id",
    "discharge_disposition_id",
    "admission_source_id",
    "medical_specialty",
    "max_glu_serum",
    "A1Cresult",
]
YEAR = 365


class Files(NamedTuple):
    """The splits of some records, and the label field that reads their outcomes."""

    paths: dict[str, str]
    label: dict[str, str]


def write(records: Sequence[dict[str, Any]], folder: Path, label: dict[str, str], seed: int = 1) -> Files:
    """Splits records at random, each whole, and writes them as JSONL."""
    folder.mkdir(parents=True, exist_ok=True)
    order = list(records)
    random.Random(seed).shuffle(order)
    paths, start = {}, 0
    for split, share in SPLITS.items():
        end = len(order) if split == "test" else start + round(share * len(order))
        path = folder / f"{split}.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in order[start:end]))
        paths[split], start = str(path), end
    return Files(paths, label)


def simulated(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Records whose risk is a fading sum of the effects of their codes, and more if two of them meet in one visit.

    Each also has `truth`: what each code adds to the log-odds, apart from that meeting.
    """
    chance = random.Random(seed)
    effects = [chance.gauss(0.0, 1.0) for _ in range(CODES)]
    for _ in range(count):
        visits = [chance.sample(range(CODES), chance.randint(2, 5)) for _ in range(chance.randint(2, 8))]
        fading = [DECAY ** (len(visits) - 1 - place) for place in range(len(visits))]
        truth = [[fade * effects[code] for code in visit] for fade, visit in zip(fading, visits, strict=True)]
        score = sum(map(sum, truth)) + sum(
            INTERACTION * fade for fade, visit in zip(fading, visits, strict=True) if {0, 1} <= set(visit)
        )
        ill = chance.random() < 1.0 / (1.0 + math.exp(-score))
        names = [[f"code {code}" for code in visit] for visit in visits]
        yield {"record": names, "label": "yes" if ill else "no", "truth": truth, "score": score}


def diabetes(archive: Path) -> Iterator[dict[str, Any]]:
    """The stays of each patient, in order, and whether the patient was readmitted within 30 days of each."""
    stays: dict[str, list[dict[str, str]]] = defaultdict(list)
    with zipfile.ZipFile(archive) as opened, opened.open("dataset_diabetes/diabetic_data.csv") as file:
        for row in csv.DictReader(io.TextIOWrapper(file, "utf-8")):
            stays[row["patient_nbr"]].append(row)
    for several in stays.values():
        several.sort(key=lambda row: int(row["encounter_id"]))  # the only order that the data have
        static = {name: several[0][name] for name in ("race", "gender") if several[0][name] not in MISSING}
        visits = [{"codes": dict(_of_stay(row))} for row in several]
        outcomes = [None if row["discharge_disposition_id"] in GONE else _back(row) for row in several]
        if any(outcome is not None for outcome in outcomes):
            yield {"record": {"visits": visits, "static": static}, "label": outcomes}


def _back(row: dict[str, str]) -> str:
    return "yes" if row["readmitted"] == "<30" else "no"


def _of_stay(row: dict[str, str]) -> Iterator[tuple[str, Any]]:
    diagnoses = {row[f"diag_{number}"].partition(".")[0] for number in (1, 2, 3)} - MISSING
    yield from ((f"ICD-9 {code}", None) for code in sorted(diagnoses))
    yield from ((f"first {code}", None) for code in {row["diag_1"].partition(".")[0]} - MISSING)
    yield from ((name, float(row[name])) for name in NUMBERS)
    yield from ((f"{name}={row[name]}", None) for name in NAMES if row[name] not in MISSING)
    drugs = list(row)[list(row).index("metformin") : list(row).index("change")]
    yield from ((f"{drug} {row[drug]}", None) for drug in drugs if row[drug] not in MISSING)


class Patient(NamedTuple):
    """A patient of Synthea's: the days of visits, in order, with conditions and drugs, and how life went."""

    static: dict[str, str]
    born: date
    died: date | None
    visits: list[tuple[date, list[str], list[str]]]


def synthea(folder: Path) -> list[Patient]:
    """The patients with two visits or more."""
    found: dict[str, dict[date, tuple[set[str], set[str]]]] = defaultdict(dict)
    for kind, name in enumerate(("conditions", "medications")):
        for row in _table(folder / f"{name}.csv.gz"):
            day = date.fromisoformat(row["START"][:10])
            found[row["PATIENT"]].setdefault(day, (set(), set()))[kind].add(row["DESCRIPTION"])
    patients = []
    for row in _table(folder / "patients.csv.gz"):
        days = sorted(found[row["ID"]].items())
        if len(days) > 1:
            static = {name.lower(): row[name] for name in ("GENDER", "RACE", "MARITAL") if row[name]}
            died = date.fromisoformat(row["DEATHDATE"][:10]) if row["DEATHDATE"] else None
            visits = [(day, sorted(conditions), sorted(drugs)) for day, (conditions, drugs) in days]
            patients.append(Patient(static, date.fromisoformat(row["BIRTHDATE"][:10]), died, visits))
    return patients


def _table(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def next_diagnoses(patients: Iterable[Patient], least: int = 30) -> Iterator[dict[str, Any]]:
    """At each visit but the last, the conditions that are new at the next; those of `least` patients or more."""
    several = list(patients)
    counts = Counter(name for patient in several for name in {c for _, cs, _ in patient.visits for c in cs})
    kept = {name for name, count in counts.items() if count >= least}
    for patient in several:
        after = [[name for name in conditions if name in kept] for _, conditions, _ in patient.visits[1:]]
        yield {"record": _record(patient), "label": [*after, None]}


def mortality(patients: Iterable[Patient]) -> Iterator[dict[str, Any]]:
    """At each visit, whether the patient dies within a year; unknown where the data end before."""
    several = list(patients)
    end = max(day for patient in several for day, _, _ in patient.visits)
    for patient in several:
        outcomes = []
        for day, _, _ in patient.visits:
            dies = patient.died is not None and (patient.died - day).days <= YEAR
            known = dies or (end - day).days >= YEAR
            outcomes.append(("yes" if dies else "no") if known else None)
        if any(outcomes):
            yield {"record": _record(patient), "label": outcomes}


def _record(patient: Patient) -> dict[str, Any]:
    visits = [
        {
            "time": day.isoformat(),
            "codes": {"age": (day - patient.born).days / 365.25} | dict.fromkeys([*conditions, *drugs]),
        }
        for day, conditions, drugs in patient.visits
    ]
    return {"visits": visits, "static": patient.static}
