"""Pickling, copying, state_dict and dtype of every member."""

import copy
import io
import pickle

import pytest
import torch

from .members import ASSEMBLIES, SCORES, SIZES, Assembly, multihead, randomise

every_member = pytest.mark.parametrize("assembly", ASSEMBLIES, ids=str)


def outputs(module, x):
    with torch.no_grad():
        reading = module(x.query, x.keys, x.values, mask=x.mask)
        return reading.context, reading.weights


def setup(assembly: Assembly):
    sizes = assembly.sizes(SIZES)
    return assembly.attention(sizes), assembly.inputs(sizes)


def identical(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


@every_member
def test_pickle_and_deepcopy(assembly):
    attention, x = setup(assembly)
    expected = outputs(attention, x)
    identical(outputs(pickle.loads(pickle.dumps(attention)), x), expected)
    twin = copy.deepcopy(attention)
    identical(outputs(twin, x), expected)
    randomise(twin, seed=3)
    identical(outputs(attention, x), expected)  # the copy shares nothing


@every_member
def test_memory_and_reading_pickle(assembly):
    attention, x = setup(assembly)
    with torch.no_grad():
        memory = attention.prepare(x.keys, x.values, mask=x.mask)
        reading = attention.read(x.query, memory)
        twin = pickle.loads(pickle.dumps(memory))
        identical(attention.read(x.query, twin).context, reading.context)
        kept = pickle.loads(pickle.dumps(reading))
        identical(kept.context, reading.context)
        identical(kept.weights, reading.weights)


@every_member
def test_state_dict_round_trip(assembly):
    attention, x = setup(assembly)
    expected = outputs(attention, x)
    file = io.BytesIO()
    torch.save(attention.state_dict(), file)
    file.seek(0)
    fresh = assembly.attention(assembly.sizes(SIZES))
    randomise(fresh, seed=5)
    fresh.load_state_dict(torch.load(file, weights_only=True), strict=True)
    identical(outputs(fresh, x), expected)


@every_member
def test_reading_leaves_the_module_as_it_was(assembly):
    attention, x = setup(assembly)
    before = copy.deepcopy(attention.state_dict())
    attributes = set(vars(attention))
    outputs(attention, x)
    assert set(vars(attention)) == attributes
    for name, tensor in attention.state_dict().items():
        identical(tensor, before[name])


@every_member
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_to_dtype(assembly, dtype):
    attention, x = setup(assembly)
    exact = outputs(attention, x)
    lower = attention.to(dtype)
    context, weights = outputs(lower, x.to(dtype))
    assert context.dtype == weights.dtype == dtype
    if dtype == torch.float32 and assembly.differentiable:
        torch.testing.assert_close((context.double(), weights.double()), exact, rtol=1e-3, atol=1e-4)
    assert context.isfinite().all()


@pytest.mark.parametrize("assembly", [a for a in ASSEMBLIES if a.works_in_heads], ids=str)
def test_multihead_pickle_and_state_dict(assembly):
    sizes = SIZES
    module = multihead(assembly, sizes)
    x = assembly.inputs(sizes)
    expected = outputs(module, x)
    identical(outputs(pickle.loads(pickle.dumps(module)), x), expected)
    fresh = randomise(multihead(assembly, sizes), seed=5)
    fresh.load_state_dict(module.state_dict(), strict=True)
    identical(outputs(fresh, x), expected)


def test_parameters_of_a_learned_member_are_in_the_state_dict():
    assert (
        "score.query_proj.weight"
        in Assembly("score", "additive").attention(SCORES["additive"].sizes(SIZES)).state_dict()
    )
