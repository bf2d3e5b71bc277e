"""The forward pass against its own rules, and the shipped model against its golden."""
import os

import pytest
import torch

import attention
import dspark
import ops
from generate import generate, speculate
from model import CACHED, FLOAT, TRAIN, Numerics

IDS = torch.arange(80)[None] * 37 % 311


def test_sinkhorn_check_values():
    A = torch.tensor([[0., 1, 2, 3], [1, 0, 1, 0], [2, 0, 0, 2], [0, 0, 3, 0]])
    want = torch.tensor([[0.0420021, 0.2838135, 0.1321142, 0.5420692], [0.3881104, 0.3549271, 0.1652178, 0.0917437],
                         [0.4910136, 0.1651914, 0.0282887, 0.3155055], [0.0788730, 0.1960671, 0.6743784, 0.0506806]])
    assert (ops.sinkhorn(A, 20, 1e-6) - want).abs().max() < 2e-7


@pytest.mark.parametrize("num", [FLOAT, CACHED])
def test_no_token_sees_a_later_one(tiny, num):
    other = IDS.clone()
    other[:, 50:] = (other[:, 50:] + 5) % 311
    with torch.no_grad():
        a, b = tiny.logits(IDS, num), tiny.logits(other, num)
    assert (a[:, :50] - b[:, :50]).abs().max() < 1e-4
    assert (a[:, 50:] - b[:, 50:]).abs().max() > 0.1


def test_every_switch_changes_the_result(tiny):
    with torch.no_grad():
        full = tiny.logits(IDS, FLOAT)
        for switch in ("no_engram", "window_only", "random_selection"):
            assert (tiny.logits(IDS, FLOAT, **{switch: True}) - full).abs().max() > 1e-2, switch


def test_ties_go_to_the_lower_row():
    s = torch.tensor([[0., 2, 1, 1, 1, -torch.inf]])
    assert attention.best(s, 3, True).tolist() == [[False, True, True, True, False, False]]
    assert attention.best(s, 3, False).tolist() == [[False, True, True, True, True, False]]


def test_candidates_keep_the_newest_block(tiny):
    s = torch.arange(40.0).flip(0)[None]
    seen = torch.arange(40) < 34
    keep = attention.candidates(s.masked_fill(~seen, -torch.inf), seen[None], tiny.c, True)[0]
    assert [b for b in range(5) if keep[8 * b]] == [0, 1, 4]


def test_draft_depends_on_anchor_and_past_alone(tiny):
    other = IDS.clone()
    other[:, 41:] = (other[:, 41:] + 9) % 311
    at, got = torch.tensor([[40]]), []
    with torch.no_grad():
        for ids in (IDS, other):
            out = tiny.forward(ids, FLOAT)
            got.append(dspark.draft_rows(tiny, ids, out["taps"], at, FLOAT, out["weights"])[0])
    assert (got[0] - got[1]).abs().max() < 1e-4


def test_greedy_speculation_writes_the_greedy_text(tiny):
    prompts, ban = [[5, 9, 40, 41], [7] * 20], torch.tensor([0, 2])
    plain = generate(tiny, prompts, FLOAT, ban, 12, 0.0)
    fast, rounds = speculate(tiny, prompts, FLOAT, ban, 12, 0.0)
    assert [f[:12] for f in fast] == plain and len(rounds) > 0


def test_training_moves_every_parameter(tiny):
    params = {k: p.clone().requires_grad_(not k.endswith("gate_bias")) for k, p in tiny.params.items()}
    tiny.params, kept = params, tiny.params
    try:
        num = Numerics(torch.float32)
        out = tiny.forward(IDS, num, dense=torch.tensor(False))
        draft, bce, overlap, _ = dspark.training_loss(tiny, IDS, out, torch.tensor([[20, 40]]), num)
        (out["hidden"].square().mean() + (out["hidden"] @ out["weights"]("head").T).logsumexp(-1).mean()
         + torch.stack(out["kl"]).sum() + draft + bce).backward()
    finally:
        tiny.params = kept
    assert [k for k, p in params.items() if p.requires_grad and (p.grad is None or not p.grad.abs().sum() > 0)] == []
    assert (overlap > 0).all() and (overlap < 1).all()
    assert TRAIN.dtype == torch.bfloat16


def test_shipped_model_gives_its_golden_logits(root):
    pytest.importorskip("tokenizers")
    from safetensors.torch import load_file

    from evaluate import Bench
    golden = load_file(f"{root}/tests/golden/mini/logits.safetensors")
    b = Bench(f"{root}/models/gannet-mini", "cpu")
    for name in ("prose", "python", "chat"):
        at = golden[f"{name}.positions"].long()
        with torch.no_grad():
            got = b.model.logits(golden[f"{name}.ids"].long()[None], FLOAT)[0, at]
        assert (got - golden[f"{name}.logits_float"]).abs().max() < 2e-4, name
    assert os.path.getsize(f"{root}/tests/golden/mini/logits.safetensors") < 2_000_000
